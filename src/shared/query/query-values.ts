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

/** The container format of a compression. */
export type Encoding = 'none' | 'gzip' | 'zstd'

export function encodingOf(compression: Compression): Encoding {
  if (compression === 'none') return 'none'
  return compression.startsWith('zstd') ? 'zstd' : 'gzip'
}

/** The extension after the capture's name in Content-Disposition, and the media type, by container. */
export const ENCODING_FILES = {
  none: { ending: '.pcap', mediaType: 'application/vnd.tcpdump.pcap' },
  gzip: { ending: '.pcap.gz', mediaType: 'application/gzip' },
  zstd: { ending: '.pcap.zst', mediaType: 'application/zstd' },
} as const satisfies Record<Encoding, { ending: string; mediaType: string }>

/**
 * The first bytes of a next record, gzip member or zstd frame. Written before a connection is cut, they leave the
 * format inside an element, so that tcpdump, gzip and zstd detect the cut too, even if everything before happens to
 * end on a boundary. pigz needs the whole header of a member.
 */
export const PARTIAL_ELEMENTS = {
  none: new Uint8Array(8),
  gzip: Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3),
  zstd: Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd),
} as const satisfies Record<Encoding, Uint8Array>
