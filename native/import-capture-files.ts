/** Capture files into the store: PCAP or pcapng of any kind becomes the segments of a new capture. */
import { CapfleetError } from '../src/base/error.ts'
import { engine } from './engine-binding.ts'

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

/**
 * Imports capture files into a new capture's folder. Rejects with bad-parameter, bad-capture-file,
 * store-full or store-unavailable, or with the signal's reason; the folder is empty again then.
 */
export async function importCaptureFiles(options: ImportOptions): Promise<ImportResult> {
  const { files, directory, segmentBytes = DEFAULT_SEGMENT_BYTES, signal, onProgress } = options
  if (!Number.isSafeInteger(segmentBytes) || segmentBytes <= 0) {
    throw new CapfleetError('bad-parameter', 'segmentBytes must be a positive integer', {
      param: 'segmentBytes',
    })
  }
  signal?.throwIfAborted()
  const job = engine.startImport({ files, directory, segmentBytes }, (progress) => onProgress?.(progress))
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
