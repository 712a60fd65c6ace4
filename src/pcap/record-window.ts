import { MAX_CAPTURED_LENGTH, RECORD_HEADER_BYTES } from './pcap-header.ts'

const NO_BYTES = Buffer.alloc(0)

/**
 * The bytes at hand of one PCAP stream, and where its next record stands in them. Plain fields: the
 * merge reads and moves `front` once per record.
 */
export class RecordWindow {
  bytes: Buffer = NO_BYTES
  view: DataView<ArrayBufferLike> = new DataView(NO_BYTES.buffer, 0, 0)
  /** The memory that the bytes lie in, and where. */
  memory: ArrayBufferLike = NO_BYTES.buffer
  offset = 0
  /** Where the next record begins; the bytes before it are taken. */
  front = 0
  /** Where that record ends; 0 while no whole record is at hand. */
  frontEnd = 0

  /** Looks at `bytes`, from a record's first byte on. */
  show(bytes: Buffer): void {
    this.bytes = bytes
    this.memory = bytes.buffer
    this.offset = bytes.byteOffset
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.front = 0
    this.frontEnd = recordEnd(this.view, 0)
  }

  /** Moves on by one record. There must be one at hand. */
  takeRecord(): void {
    this.front = this.frontEnd
    this.frontEnd = recordEnd(this.view, this.front)
  }
}

/** Where the record that begins at `start` ends; 0 when it is not whole, or claims too much. */
export function recordEnd(view: DataView, start: number): number {
  if (start + RECORD_HEADER_BYTES > view.byteLength) return 0
  const capturedLength = view.getUint32(start + 8, true)
  const end = start + RECORD_HEADER_BYTES + capturedLength
  return end > view.byteLength || capturedLength > MAX_CAPTURED_LENGTH ? 0 : end
}
