import assert from 'node:assert/strict'
import { PCAP_HEADER_BYTES } from '../pcap/pcap-header.ts'
import { badParameter } from '../query/query-parameters.ts'
import type { OpenBody } from './open-body.ts'
import { bodyChanged, type ResumePoint } from './resume-point.ts'
import type { BodyStart } from './running-receipt.ts'
import { isInOrder } from './time-marks.ts'
import { UnfinishedRecord } from './unfinished-record.ts'
import { verifiedChunks } from './verified-chunks.ts'

/** What is known of the body that is made again. */
type WholeBody = Omit<OpenBody, 'start'>

/**
 * Reads `body`, an uncompressed one that is made again from its beginning or from the point's mark,
 * up to the point and gives back the rest. What was sent before is compared as far as it is remembered:
 * fails with aged-out, in the rest too; with bad-parameter when the body ends before the point.
 */
export async function resumedBody(body: WholeBody, point: ResumePoint): Promise<OpenBody> {
  const skipped = new SkippedPart(point)
  const source = body.chunks[Symbol.asyncIterator]()
  if (point.mark !== undefined) skipped.begin(await headerOf(source))
  const chunks = verifiedChunks(
    { [Symbol.asyncIterator]: () => source },
    {
      from: point.mark?.bytes ?? 0n,
      checkpoints: point.checkpoints,
      changed: () => bodyChanged(point),
    },
  )
  while (!skipped.isWhole) {
    const { done, value } = await chunks.next()
    if (done === true) throw skipped.endedEarly()
    skipped.add(value)
  }
  const { bytes, headerBytes, first } = skipped.end()
  async function* rest(): AsyncGenerator<Uint8Array> {
    if (first.length > 0) yield first
    yield* chunks
    // What a device holds behind the mark with an earlier time did not come.
    if (point.mark !== undefined && !body.report().every(isInOrder)) throw bodyChanged(point)
  }
  return {
    encoding: body.encoding,
    start: { bytes, headerBytes },
    chunks: rest(),
    cutMark: () => body.cutMark(),
    trailers: () => withoutCounts(body.trailers()),
    report: () => body.report(),
    head: () => body.head?.() ?? {},
    ...(body.park === undefined ? {} : { park: () => body.park?.() }),
    ...(body.unpark === undefined ? {} : { unpark: (reopen) => body.unpark?.(reopen) }),
  }
}

/** A merge yields it by itself. */
async function headerOf(source: AsyncIterator<Uint8Array>): Promise<Uint8Array> {
  const { value } = await source.next()
  assert.equal(value?.length, PCAP_HEADER_BYTES)
  return value
}

/** They count the whole body. */
function withoutCounts(trailers: Readonly<Record<string, string>>): Record<string, string> {
  const { 'Capfleet-Packets': _packets, 'Capfleet-Bytes': _bytes, ...rest } = trailers
  return rest
}

/** The bytes before the point, of which little is kept. */
class SkippedPart {
  readonly #point: ResumePoint
  readonly #record = new UnfinishedRecord()
  #bytes = 0n
  #left: Buffer = Buffer.alloc(0)

  constructor(point: ResumePoint) {
    this.#point = point
  }

  /** The body begins at the mark, after a header of its own. */
  begin(header: Uint8Array): void {
    this.#bytes = this.#point.mark?.bytes ?? 0n
    this.#record.feed(header)
  }

  get isWhole(): boolean {
    return this.#bytes >= this.#end
  }

  /** Also where there is nothing to skip the header of a new file is read. */
  get #end(): bigint {
    const { bytes, asNewFile } = this.#point
    return asNewFile && bytes < PCAP_HEADER_BYTES ? BigInt(PCAP_HEADER_BYTES) : bytes
  }

  add(chunk: Uint8Array): void {
    const wanted = this.#end - this.#bytes
    const taken = wanted < BigInt(chunk.length) ? Number(wanted) : chunk.length
    this.#bytes += BigInt(taken)
    if (this.#point.asNewFile) this.#record.feed(chunk.subarray(0, taken))
    this.#left = Buffer.from(chunk.subarray(taken))
  }

  endedEarly(): Error {
    return badParameter('Offset', `is ${this.#point.bytes}, the whole file has ${this.#bytes} bytes`)
  }

  /** Where the answer begins in the body, and its first bytes that are here already. */
  end(): BodyStart & { readonly first: Buffer } {
    if (!this.#point.asNewFile) return { bytes: this.#bytes, headerBytes: 0, first: this.#left }
    const { header, bytes } = this.#record
    return {
      bytes: this.#bytes - BigInt(bytes.length),
      headerBytes: header.length,
      first: Buffer.concat([header, bytes, this.#left]),
    }
  }
}
