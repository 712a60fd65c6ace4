import { type FileHandle, open } from 'node:fs/promises'
import { MAX_CAPTURED_LENGTH, RECORD_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'

const MAGIC_NANOSECONDS = 0xa1b23c4d
const LINK_TYPE_ETHERNET = 1
const BUFFER_BYTES = 1_048_576

/** Writes a nanosecond PCAP file through one buffer. Dispose it when done. */
export class PcapFile implements AsyncDisposable {
  readonly #file: FileHandle
  readonly #buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
  #filled: number

  /** Creates the file or truncates it. */
  static async create(path: string): Promise<PcapFile> {
    return new PcapFile(await open(path, 'w'))
  }

  private constructor(file: FileHandle) {
    this.#file = file
    this.#filled = 24
    this.#buffer.fill(0, 0, 24)
    this.#buffer.writeUInt32LE(MAGIC_NANOSECONDS, 0)
    this.#buffer.writeUInt16LE(2, 4)
    this.#buffer.writeUInt16LE(4, 6)
    this.#buffer.writeUInt32LE(MAX_CAPTURED_LENGTH, 16)
    this.#buffer.writeUInt32LE(LINK_TYPE_ETHERNET, 20)
  }

  /** Whether a packet of this many bytes fits before the next flush(). */
  hasRoom(packetBytes: number): boolean {
    return this.#filled + RECORD_HEADER_BYTES + packetBytes <= BUFFER_BYTES
  }

  /** Appends a whole packet to the buffer; call flush() first if it has no room. */
  append(timestampNs: bigint, packet: Buffer): void {
    const at = this.#filled
    this.#buffer.writeUInt32LE(Number(timestampNs / 1_000_000_000n), at)
    this.#buffer.writeUInt32LE(Number(timestampNs % 1_000_000_000n), at + 4)
    this.#buffer.writeUInt32LE(packet.byteLength, at + 8)
    this.#buffer.writeUInt32LE(packet.byteLength, at + 12)
    packet.copy(this.#buffer, at + RECORD_HEADER_BYTES)
    this.#filled = at + RECORD_HEADER_BYTES + packet.byteLength
  }

  async flush(): Promise<void> {
    let written = 0
    while (written < this.#filled) {
      const { bytesWritten } = await this.#file.write(this.#buffer, written, this.#filled - written)
      written += bytesWritten
    }
    this.#filled = 0
  }

  /** Closes the file; what was not flushed is lost. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
  }
}
