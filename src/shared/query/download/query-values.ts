/** The enumerated values of the download parameters. */

/** `Compression` (4.4.6). */
export const COMPRESSIONS = [
  'none',
  'fast',
  'best',
  '1',
  '2',
  '3',
  '4',
  '5',
  '6',
  '7',
  '8',
  '9',
  'zstd',
  'zstd_fast',
  'zstd_ultra',
] as const
export type Compression = (typeof COMPRESSIONS)[number]

/** `DedupBy`: what copies of a packet have in common. */
export const DEDUP_KEYS = ['payload', 'ip'] as const
export type DedupBy = (typeof DEDUP_KEYS)[number]

/** `Strip`: kinds of headers, of which `all` includes the others. */
export const STRIP_KINDS = ['vlan', 'mpls', 'tunnels', 'all'] as const
export type StripKind = (typeof STRIP_KINDS)[number]

/** `Format`: of the file, before compression. */
export const FILE_FORMATS = ['pcap', 'pcapng'] as const
export type FileFormat = (typeof FILE_FORMATS)[number]

/** What a body is: a plain PCAP, plain pcapng, or either of them compressed. */
export type Encoding = 'none' | 'pcapng' | CompressedEncoding
export type CompressedEncoding = 'gzip' | 'zstd'

export function isCompressed(encoding: Encoding): encoding is CompressedEncoding {
  return encoding === 'gzip' || encoding === 'zstd'
}

export function encodingOf(compression: Compression): Exclude<Encoding, 'pcapng'> {
  if (compression === 'none') return 'none'
  return compression.startsWith('zstd') ? 'zstd' : 'gzip'
}

/** How a download is written. */
export interface FileForm {
  readonly format: FileFormat
  readonly compression: Compression
}

export function bodyEncodingOf({ format, compression }: FileForm): Encoding {
  const encoding = encodingOf(compression)
  return encoding === 'none' && format === 'pcapng' ? 'pcapng' : encoding
}

/** The extension after the capture's name in Content-Disposition, and the media type, by encoding. */
export const ENCODING_FILES = {
  none: { ending: '.pcap', mediaType: 'application/vnd.tcpdump.pcap' },
  pcapng: { ending: '.pcapng', mediaType: 'application/x-pcapng' },
  gzip: { ending: '.pcap.gz', mediaType: 'application/gzip' },
  zstd: { ending: '.pcap.zst', mediaType: 'application/zstd' },
} as const satisfies Record<Encoding, { ending: string; mediaType: string }>

/** The extension of a download's file. */
export function fileEndingOf(form: FileForm): string {
  const { ending } = ENCODING_FILES[bodyEncodingOf(form)]
  return form.format === 'pcapng' ? ending.replace(/^\.pcap(?!ng)/, '.pcapng') : ending
}

/**
 * The first bytes of a next record, packet block, gzip member or zstd frame. Written before a connection is cut, they
 * leave the format inside an element, so that tcpdump, gzip and zstd detect the cut too, even if everything before
 * happens to end on a boundary. pigz needs the whole header of a member.
 */
export const PARTIAL_ELEMENTS = {
  none: new Uint8Array(8),
  pcapng: Uint8Array.of(6, 0, 0, 0, 64, 0, 0, 0),
  gzip: Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3),
  zstd: Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd),
} as const satisfies Record<Encoding, Uint8Array>
