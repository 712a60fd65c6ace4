import type { FileHandle } from 'node:fs/promises'
import type { ChunkStream } from '../../gateway/pcap/pcap-input.ts'

const READ_BYTES = 262_144

/** A file in chunks, which are read into two alternating buffers. The owner still has to close the file. */
export class FileChunks implements ChunkStream {
  readonly #file: FileHandle
  readonly #buffers = [Buffer.allocUnsafeSlow(READ_BYTES), Buffer.allocUnsafeSlow(READ_BYTES)]
  #turn = 0

  constructor(file: FileHandle) {
    this.#file = file
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const buffer = this.#buffers[this.#turn++ % 2] ?? Buffer.alloc(0)
    const { bytesRead } = await this.#file.read(buffer, 0, READ_BYTES, null)
    if (bytesRead === 0) return { done: true, value: undefined }
    return { done: false, value: buffer.subarray(0, bytesRead) }
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    return { done: true, value: undefined }
  }
}
