/** A device's pcapng as a PCAP whose packets begin with the tag of their interface, for a merge. */
import { PcapngRecords } from '../../../native/pcapng-records.ts'
import { formatPcapHeader } from '../../shared/pcap/pcap-header.ts'
import { MAX_CAPTURED_LENGTH } from '../../shared/pcap/pcap-sizes.ts'
import { deviceProtocol } from '../device/device-failure.ts'
import type { FileInterfaces, StreamOptions } from './file-interfaces.ts'
import type { ChunkStream } from './pcap-input.ts'

export interface TaggedStreamOptions extends StreamOptions {
  readonly device: string
  readonly interfaces: FileInterfaces
}

/** Link types are those of the interfaces, so the header has none. */
export const TAGGED_HEADER = formatPcapHeader({
  linkType: 0,
  snaplen: MAX_CAPTURED_LENGTH,
  nanoseconds: true,
})

/**
 * The stream as PcapInput reads it with `isTagged`. Fails with device-protocol for what is not pcapng as capfleet writes
 * it, and when it ends inside a block.
 */
export function taggedRecords(chunks: ChunkStream, options: TaggedStreamOptions): ChunkStream {
  return new TaggedRecords(chunks, options)
}

/** Turns whole blocks of a file that was merged before, from its first one on, into such records, which are written over them. */
export function recordsOfFile(interfaces: FileInterfaces): (blocks: Uint8Array) => readonly Uint8Array[] {
  const records = new PcapngRecords(interfaces.blocksOfFile())
  return (blocks) => {
    const pieces: Uint8Array[] = []
    records.show(blocks)
    for (let next = records.next(); next !== undefined; next = records.next()) pieces.push(next)
    return pieces
  }
}

class TaggedRecords implements ChunkStream {
  readonly #chunks: ChunkStream
  readonly #device: string
  readonly #records: PcapngRecords
  #hasBegun = false

  constructor(chunks: ChunkStream, { device, interfaces, alignNs, isContinued }: TaggedStreamOptions) {
    this.#chunks = chunks
    this.#device = device
    this.#records = new PcapngRecords(interfaces.blocksOf(device, { alignNs, isContinued }))
  }

  take(): Uint8Array | undefined {
    if (!this.#hasBegun) return undefined
    for (;;) {
      const records = this.#nextRecords()
      if (records !== undefined) return records
      const chunk = this.#chunks.take?.()
      if (chunk === undefined) return undefined
      this.#records.show(chunk)
    }
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (!this.#hasBegun) {
      this.#hasBegun = true
      return { done: false, value: Buffer.from(TAGGED_HEADER) }
    }
    for (;;) {
      const records = this.#nextRecords()
      if (records !== undefined) return { done: false, value: records }
      const next = await this.#chunks.next()
      if (next.done === true) break
      this.#records.show(next.value)
    }
    if (!this.#records.isBetweenBlocks) throw deviceProtocol(this.#device, 'ended inside a block of pcapng')
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    await this.#chunks.return?.()
    return { done: true, value: undefined }
  }

  #nextRecords(): Uint8Array | undefined {
    try {
      return this.#records.next()
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      throw deviceProtocol(this.#device, `sent pcapng that cannot be merged: ${why}`, error)
    }
  }
}
