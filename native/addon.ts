/**
 * The engine, as TypeScript sees it: open a download over stored segments, import capture files.
 * Arguments are checked here; binding/ checks types only. Nanoseconds and counts that can pass
 * 2^53 are bigint in both directions. All work runs on the engine's threads, never on this one.
 */

/** Values of `Compression` (API section 4.4.6). */
export type Compression =
  | 'none' | 'fast' | 'best' | '1' | '2' | '3' | '4' | '5' | '6' | '7' | '8' | '9'
  | 'zstd' | 'zstd_fast' | 'zstd_ultra'

/** One capture port of one capture: its segments in recording order, as paths without ending. */
export interface StreamFiles {
  readonly port: number
  readonly segments: readonly string[]
}

export interface DownloadOptions {
  /** Order breaks ties: packets with equal timestamps come in the order of this list. */
  readonly streams: readonly StreamFiles[]
  /** Half-open: beginNs <= timestamp < endNs. */
  readonly beginNs: bigint
  readonly endNs: bigint
  /** A cBPF program from the compile helper, for the streams' link type; absent = every packet. */
  readonly filter?: Uint8Array | undefined
  /** Keep at most this many bytes of each packet (1 to 12288). */
  readonly sliceBytes?: number | undefined
  /** End before the first packet that is this much or more after the first delivered one. */
  readonly tsMaxNs?: bigint | undefined
  readonly timeResolution: 'nsec' | 'usec'
  readonly compression: Compression
  /** Link type word and snaplen of the file header when `streams` is empty. */
  readonly emptyLinkType?: number | undefined
}

/** Live figures of a download; exact when next() has returned undefined. */
export interface DownloadTotals {
  /** Packets handed out, and their bytes as PCAP records before compression. */
  readonly packets: bigint
  readonly bytes: bigint
  /** Bytes of the chunks handed out (compressed, with the file header). */
  readonly outputBytes: bigint
  /** Packets and bytes read from the store. */
  readonly readPackets: bigint
  readonly readBytes: bigint
  /** Blocks left out because their checksum did not match. */
  readonly corruptBlocks: bigint
  /** Timestamps of the first and last packet handed out; undefined before the first. */
  readonly firstNs: bigint | undefined
  readonly lastNs: bigint | undefined
}

/** A pooled piece of the body, up to 1 MiB. `bytes` is valid until release(), which must be called. */
export interface Chunk {
  readonly bytes: Buffer
  release(): void
}

export interface ImportOptions {
  /** Capture files in order (PCAP or pcapng, optionally gzip or zstd). */
  readonly files: readonly string[]
  /** An existing empty folder; cap0/, cap1/ ... are made in it. */
  readonly directory: string
  readonly segmentBytes?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Called about five times a second. Input bytes as stored on disk (compressed if so). */
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined
}

export interface ImportProgress {
  readonly inputBytes: bigint
  readonly totalInputBytes: bigint
  readonly packets: bigint
}

export interface SegmentSummary {
  readonly number: number
  readonly minNs: bigint
  readonly maxNs: bigint
  readonly packets: bigint
  readonly bytes: bigint
}

export interface StreamSummary {
  readonly port: number
  /** Link type word of the PCAP header: LINKTYPE in the low 16 bits. */
  readonly linkType: number
  readonly snaplen: number
  readonly segments: readonly SegmentSummary[]
}

/** A part of an input that could not be imported. Everything before `offset` was. */
export interface ImportDamage {
  readonly file: string
  /** In the file, or in the decompressed stream when `compressed`. */
  readonly offset: bigint
  readonly compressed: boolean
  readonly message: string
}

export interface ImportResult {
  readonly streams: readonly StreamSummary[]
  readonly packets: bigint
  /** Packets left out because PCAP cannot carry their timestamp (before 1970 or after 2106-02-07). */
  readonly packetsOutOfTimeRange: bigint
  readonly damages: readonly ImportDamage[]
}
