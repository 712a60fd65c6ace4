/**
 * Merges PCAP files with src/gateway/pcap as the gateway merges streams: from memory, in chunks as small as its reads,
 * to reused buffers. `node merge-files.ts time <file> ...` prints `{"seconds", "cpuSeconds", "peakRssMiB"}`, with times
 * as medians of the later passes, because a gateway that has been running is compiled. `write` writes the merge to
 * stdout.
 */
import { readFileSync, writeSync } from 'node:fs'
import { MERGE_READ_SIZE } from '../../../src/gateway/device/read-size.ts'
import { commonHeader } from '../../../src/gateway/pcap/common-header.ts'
import { PcapMerge } from '../../../src/gateway/pcap/merge.ts'
import { type ChunkStream, PcapInput } from '../../../src/gateway/pcap/pcap-input.ts'
import { formatPcapHeader } from '../../../src/shared/pcap/pcap-header.ts'

const CHUNK_BYTES = MERGE_READ_SIZE.leastBytes
const FIRST_PASSES = 5
const LATER_PASSES = 5

const [mode, ...paths] = process.argv.slice(2)
const files = paths.map((path) => ({ path, bytes: readFileSync(path) }))

/** All of it has arrived. */
function chunksOf(bytes: Buffer): ChunkStream {
  let at = 0
  const take = () => {
    const chunk = bytes.subarray(at, at + CHUNK_BYTES)
    at += chunk.byteLength
    return chunk.byteLength > 0 ? chunk : undefined
  }
  const next = (): IteratorResult<Uint8Array, undefined> => {
    const value = take()
    return value === undefined ? { done: true, value } : { done: false, value }
  }
  return { take, next: () => Promise.resolve(next()) }
}

/** As in a gateway, which keeps it. */
const outputs = Buffer.allocUnsafeSlow(PcapMerge.outputBytes)

async function mergeOnce() {
  const startMs = performance.now()
  const startCpu = process.cpuUsage()
  const inputs = await Promise.all(files.map(({ path, bytes }) => PcapInput.open(path, chunksOf(bytes))))
  const common = commonHeader(inputs)
  const header = formatPcapHeader(common)
  const merge = new PcapMerge(inputs, { outputs, toMicroseconds: !common.nanoseconds })
  if (mode === 'write') writeAll(header)
  for await (const chunk of merge.chunks()) if (mode === 'write') writeAll(chunk)
  const cpu = process.cpuUsage(startCpu)
  return {
    seconds: (performance.now() - startMs) / 1_000,
    cpuSeconds: (cpu.user + cpu.system) / 1_000_000,
  }
}

function writeAll(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.byteLength; ) at += writeSync(1, bytes, at)
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

if (mode === 'write') {
  await mergeOnce()
  process.exit()
}
for (let pass = 0; pass < FIRST_PASSES; pass++) await mergeOnce()
const passes: Awaited<ReturnType<typeof mergeOnce>>[] = []
for (let pass = 0; pass < LATER_PASSES; pass++) passes.push(await mergeOnce())
const seconds = median(passes.map((pass) => pass.seconds))
const cpuSeconds = median(passes.map((pass) => pass.cpuSeconds))
const peakRssMiB = process.resourceUsage().maxRSS / 1024
process.stdout.write(`${JSON.stringify({ seconds, cpuSeconds, peakRssMiB })}\n`)
