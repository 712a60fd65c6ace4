/** Imports capture files into the store: PCAP or pcapng of any kind becomes the segments of a new capture. */
import { CapfleetError } from '../src/shared/base/error.ts'
import { loadAddon } from './load-addon.ts'

export interface ImportOptions {
  /** Capture files in order (PCAP or pcapng, optionally compressed by gzip, zstd, xz, lz4 or bzip2). */
  readonly files: readonly string[]
  /** An existing empty folder; cap0/, cap1/ ... are created in it. */
  readonly directory: string
  readonly segmentBytes?: number | undefined
  /** Limit for the packets of all files, as PCAP records. Default: what the disk holds. */
  readonly maxBytes?: bigint | undefined
  /** Maximum decompression ratio of a file, beyond 64 MiB. Default: 200. */
  readonly maxRatio?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Called about five times a second. Input bytes are counted as stored on disk (compressed if so). */
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
  /** Size of the segment file, including the file header. */
  readonly bytes: bigint
  /** Total size of index, tallies and sieves. */
  readonly sideBytes: number
  /** Of its blocks, as in a LogEntry. */
  readonly checksum: number
  /** Whether the files are directly in the port's folder, as in stores of format 1, and not in a group's subfolder. */
  readonly isFlat: boolean
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
  /** In the file, or in the decompressed stream when `compressed`; 0 = the whole file is left out. */
  readonly offset: bigint
  readonly compressed: boolean
  readonly message: string
}

/** A fact about an input from which nothing is missing. */
export interface ImportNote {
  readonly file: string
  /** Continues the name of the file. */
  readonly message: string
}

export interface ImportResult {
  readonly streams: readonly StreamSummary[]
  readonly packets: bigint
  /** Packets left out because PCAP cannot represent their timestamp (before 1970 or after 2106-02-07). */
  readonly packetsOutOfTimeRange: bigint
  readonly damages: readonly ImportDamage[]
  readonly notes: readonly ImportNote[]
}

interface NativeImport {
  readonly finished: Promise<ImportResult>
  cancel(): void
}

const engine = loadAddon<{
  startImport(
    options: Omit<Required<ImportOptions>, 'signal' | 'onProgress' | 'segmentBytes' | 'maxRatio'> & {
      readonly segmentBytes: number
      readonly maxRatio: number
    },
    onProgress: (progress: ImportProgress) => void,
  ): NativeImport
}>('capfleet')

/**
 * Imports capture files into a new capture's folder. A file that is not a capture file, or becomes too large when
 * decompressed, is left out and listed in the damages. Rejects with bad-parameter, bad-capture-file (every file is
 * left out), store-full (the disk, or maxBytes) or store-unavailable, or with the signal's reason; the folder is then
 * empty again.
 */
export async function importCaptureFiles(options: ImportOptions): Promise<ImportResult> {
  const { files, directory, maxBytes, signal, onProgress } = options
  const { segmentBytes = DEFAULT_SEGMENT_BYTES, maxRatio = DEFAULT_MAX_RATIO } = options
  for (const [param, value] of Object.entries({ segmentBytes, maxRatio })) {
    if (Number.isSafeInteger(value) && value > 0) continue
    throw new CapfleetError('bad-parameter', `${param} must be a positive integer`, { param })
  }
  signal?.throwIfAborted()
  const job = engine.startImport({ files, directory, segmentBytes, maxBytes, maxRatio }, (progress) =>
    onProgress?.(progress),
  )
  const cancel = () => job.cancel()
  signal?.addEventListener('abort', cancel, { once: true })
  try {
    return await job.finished
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  } finally {
    signal?.removeEventListener('abort', cancel)
  }
}

const DEFAULT_SEGMENT_BYTES = 2 ** 30
const DEFAULT_MAX_RATIO = 200
