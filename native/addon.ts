/**
 * The engine, as TypeScript sees it: open a download over stored segments, import capture files.
 * Arguments are checked here; binding/ checks types only. Nanoseconds and counts that can pass
 * 2^53 are bigint in both directions. All work runs on the engine's threads, never on this one.
 */
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { CapfleetError } from '../src/base/error.ts'
import { engine, type NativeDownload, type NativeOptions, type NativePart } from './engine-binding.ts'

/** Values of `Compression` (API section 4.4.6). */
export type Compression =
  | 'none'
  | 'fast'
  | 'best'
  | '1'
  | '2'
  | '3'
  | '4'
  | '5'
  | '6'
  | '7'
  | '8'
  | '9'
  | 'zstd'
  | 'zstd_fast'
  | 'zstd_ultra'

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

/**
 * A pooled piece of the body, up to 1 MiB (and 4 KiB more when gzip cannot compress it). `bytes` is
 * valid until release(), which must be called; calling it again does nothing.
 */
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

/** The program that compiles filter expressions; see native/engine/bpf_compile_main.cc. */
export const bpfCompilerPath = fileURLToPath(new URL('build/capfleet-bpf-compile', import.meta.url))

/** Stored packets as the bytes of one PCAP file, pulled by the caller. */
export class Download implements AsyncDisposable {
  /** Link type word of the PCAP header. */
  readonly linkType: number
  readonly snaplen: number
  readonly #native: NativeDownload
  #isWaiting = false

  private constructor(native: NativeDownload) {
    this.#native = native
    this.linkType = native.linkType
    this.snaplen = native.snaplen
  }

  /**
   * Reads the indexes and starts to scan. Rejects with bad-parameter, bad-bpf, mixed-link-type,
   * store-unavailable or store-corrupt.
   */
  static async open(options: DownloadOptions): Promise<Download> {
    return new Download(await engine.openDownload(toNativeOptions(options)))
  }

  /**
   * The next piece of the body, undefined at its end; the first is the PCAP file header. One call
   * at a time. Rejects with store-unavailable when the disk fails, with an AbortError once closed.
   * A few pieces may be held at once; the scan stops while too many are not released.
   */
  async next(): Promise<Chunk | undefined> {
    assert(!this.#isWaiting, 'next() was called while another call waits')
    this.#isWaiting = true
    try {
      const part = await this.#native.next()
      return part && new PooledChunk(this.#native, part)
    } finally {
      this.#isWaiting = false
    }
  }

  totals(): DownloadTotals {
    return this.#native.totals()
  }

  /** Stops at once; a waiting next() rejects with an AbortError. May be called again. */
  close(): void {
    this.#native.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }
}

/**
 * Imports capture files into a new capture's folder. Rejects with bad-parameter, bad-capture-file,
 * store-full or store-unavailable, or with the signal's reason; the folder is empty again then.
 */
export async function importCaptureFiles(options: ImportOptions): Promise<ImportResult> {
  const { files, directory, segmentBytes = DEFAULT_SEGMENT_BYTES, signal, onProgress } = options
  if (!Number.isSafeInteger(segmentBytes) || segmentBytes <= 0) {
    throw badParameter('segmentBytes', 'must be a positive integer')
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
const MAX_SLICE_BYTES = 12_288 // stated by the appliance API, section 8
const KEEP_WHOLE_PACKETS = 262_144 // no packet is longer
const MAX_NS = 2n ** 63n - 1n
const ETHERNET = 1

/** Codec (0 none, 1 gzip, 2 zstd) and level, as native/engine/compression.h has them. */
const COMPRESSIONS: Readonly<Record<Compression, { readonly codec: number; readonly level: number }>> = {
  none: { codec: 0, level: 0 },
  fast: { codec: 1, level: 1 },
  '1': { codec: 1, level: 1 },
  '2': { codec: 1, level: 2 },
  '3': { codec: 1, level: 3 },
  '4': { codec: 1, level: 4 },
  '5': { codec: 1, level: 5 },
  '6': { codec: 1, level: 6 },
  '7': { codec: 1, level: 7 },
  '8': { codec: 1, level: 8 },
  '9': { codec: 1, level: 9 },
  best: { codec: 1, level: 12 },
  zstd: { codec: 2, level: 3 },
  zstd_fast: { codec: 2, level: -1 },
  zstd_ultra: { codec: 2, level: 22 },
}

class PooledChunk implements Chunk {
  readonly bytes: Buffer
  readonly #native: NativeDownload
  readonly #id: number

  constructor(native: NativeDownload, part: NativePart) {
    this.bytes = part.slab.subarray(0, part.length)
    this.#native = native
    this.#id = part.id
  }

  release(): void {
    this.#native.release(this.#id)
  }
}

function toNativeOptions(options: DownloadOptions): NativeOptions {
  const { sliceBytes, tsMaxNs, emptyLinkType = ETHERNET } = options
  checkNanos('beginNs', options.beginNs, 0n)
  checkNanos('endNs', options.endNs, 0n)
  if (tsMaxNs !== undefined) checkNanos('tsMaxNs', tsMaxNs, 1n)
  const isSlice = sliceBytes === undefined || Number.isInteger(sliceBytes)
  if (!isSlice || (sliceBytes ?? 1) < 1 || (sliceBytes ?? 1) > MAX_SLICE_BYTES) {
    throw badParameter('sliceBytes', `must be an integer from 1 to ${MAX_SLICE_BYTES}`)
  }
  return {
    streams: options.streams.map((stream) => stream.segments),
    beginNs: options.beginNs,
    endNs: options.endNs,
    filter: options.filter,
    sliceBytes: sliceBytes ?? KEEP_WHOLE_PACKETS,
    tsMaxNs,
    toMicroseconds: options.timeResolution === 'usec',
    ...COMPRESSIONS[options.compression],
    emptyLinkType,
  }
}

function checkNanos(param: string, value: bigint, least: bigint): void {
  if (value >= least && value <= MAX_NS) return
  throw badParameter(param, `must be from ${least} to ${MAX_NS} nanoseconds, got ${value}`)
}

function badParameter(param: string, rule: string): CapfleetError {
  return new CapfleetError('bad-parameter', `${param} ${rule}`, { param })
}
