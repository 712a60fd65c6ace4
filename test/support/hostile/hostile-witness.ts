/** Clients that report what they saw of a download: a clean end with these bytes, or a failure. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { GATEWAY_AUTHORIZATION, GATEWAY_CREDENTIALS } from '../processes/gateway-process.ts'
import { shellPipeline } from '../processes/shell-pipeline.ts'
import type { HostileCompression } from './hostile-case.ts'

export interface Witnessed {
  readonly client: string
  /** Undefined if the client saw a failure. */
  readonly bytes: Buffer | undefined
  /** The failure in the client's words. */
  readonly failure: string
  /** False if a program that reads the client's output took a failed download for a whole file. */
  readonly readerNoticed: boolean
}

const LIMIT_S = 120

/** Node's own fetch; any status but 200 is a failure. */
export async function fetchWitness(url: string): Promise<Witnessed> {
  const client = 'fetch'
  const signal = AbortSignal.timeout(LIMIT_S * 1_000)
  try {
    const answer = await fetch(url, { headers: { authorization: GATEWAY_AUTHORIZATION }, signal })
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (answer.status === 200) return { client, bytes, failure: '', readerNoticed: true }
    return { client, bytes: undefined, failure: bytes.toString(), readerNoticed: true }
  } catch (error) {
    if (signal.aborted) throw new Error(`hung: ${url}`, { cause: error })
    return { client, bytes: undefined, failure: String(error), readerNoticed: true }
  }
}

/** What a README pipeline does with the file. */
const READERS: Readonly<Record<HostileCompression, string>> = {
  none: 'tcpdump -nr - -w /dev/null',
  fast: 'gzip -dc',
  best: 'gzip -dc',
  zstd: 'zstd -dc',
}

/** curl piped into tcpdump (or the decompressor). */
export async function curlWitness(
  url: string,
  place: { readonly folder: string; readonly name: string; readonly compression: HostileCompression },
): Promise<Witnessed> {
  const file = join(place.folder, place.name)
  const script = `curl -fsS --max-time ${LIMIT_S} -u "$WHO" "$ADDRESS" | tee "$FILE" | ${READERS[place.compression]} > /dev/null`
  const { codes, stderr } = await shellPipeline(script, {
    WHO: GATEWAY_CREDENTIALS,
    ADDRESS: url,
    FILE: file,
  })
  const [curl, , reader] = codes
  if (curl === 28) throw new Error(`hung: ${url}`)
  const bytes = await readFile(file)
  // Empty output is not a gzip or zstd file that could be taken for a capture.
  const nothing = bytes.length === 0 && place.compression !== 'none'
  return {
    client: 'curl',
    bytes: curl === 0 ? bytes : undefined,
    failure: stderr,
    readerNoticed: curl === 0 || nothing || reader !== 0,
  }
}

/** The decompressed PCAP; undefined if it cannot be decoded. */
export function decoded(bytes: Buffer, compression: HostileCompression): Buffer | undefined {
  try {
    if (compression === 'none') return bytes
    return compression === 'zstd' ? unpackFrames(bytes) : gunzipSync(bytes)
  } catch {
    return undefined
  }
}

/** Node stops after the first of several frames. */
function unpackFrames(bytes: Buffer): Buffer {
  const frames: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const { buffer, engine } = zstdDecompressSync(bytes.subarray(at), { info: true }) as unknown as {
      readonly buffer: Buffer
      readonly engine: { readonly bytesWritten: number }
    }
    frames.push(buffer)
    at += engine.bytesWritten
  }
  return Buffer.concat(frames)
}
