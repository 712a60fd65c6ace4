/** How a device's stream is encoded, by its first bytes. */
import type { CompressedEncoding } from '../../../shared/query/download/query-values.ts'

const GZIP_MAGIC = Buffer.of(0x1f, 0x8b)
const ZSTD_MAGIC = Buffer.of(0x28, 0xb5, 0x2f, 0xfd)

const SECTION_HEADER = Buffer.of(0x0a, 0x0d, 0x0d, 0x0a)

export function isPcapng(head: Buffer): boolean {
  return head.subarray(0, SECTION_HEADER.length).equals(SECTION_HEADER)
}

/** Undefined for a stream that is not compressed, or no stream at all. */
export function compressionOf(head: Buffer): CompressedEncoding | undefined {
  if (head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) return 'gzip'
  return head.subarray(0, ZSTD_MAGIC.length).equals(ZSTD_MAGIC) ? 'zstd' : undefined
}
