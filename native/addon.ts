/**
 * The engine, as TypeScript sees it: downloads of stored segments, and what their indexes say.
 * Arguments are checked here and in download-options.ts; binding/ checks types only. Nanoseconds and counts that can pass
 * 2^53 are bigint in both directions. All work runs on the engine's threads, never on this one.
 */
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import {
  checkBoundaries,
  type DownloadOptions,
  type NativeOptions,
  type StreamFiles,
  TIME_SOURCES,
  type TimeSource,
  toNativeOptions,
} from './download-options.ts'
import { loadAddon } from './load-addon.ts'

/** Live figures of a download; exact when next() has returned undefined. */
export interface DownloadTotals {
  /**
   * Packets handed out, and their bytes as PCAP records before compression. Here and in all figures
   * that do not speak of output or reading, what `afterBytes` left out counts as handed out.
   */
  readonly packets: bigint
  readonly bytes: bigint
  /** Of `packets` those that lie wholly before `afterBytes`, and so were not handed out. */
  readonly skippedPackets: bigint
  /** Bytes of the chunks handed out (compressed, with the file header). */
  readonly outputBytes: bigint
  /** Packets and bytes of the range that the filters decided on, those of `passedBlocks` among them. */
  readonly readPackets: bigint
  readonly readBytes: bigint
  /** Packets read before the last of `packets` that were left out: not of the range, or by a filter. It never falls. */
  readonly excludedPackets: bigint
  /** Blocks that were not read, because no packet of them can pass the filter. */
  readonly passedBlocks: bigint
  /** Blocks left out because their checksum did not match, as far as they were read. */
  readonly corruptBlocks: bigint
  /** Timestamps of the first and last packet handed out; undefined before the first. */
  readonly firstNs: bigint | undefined
  readonly lastNs: bigint | undefined
  /** Packets that pass the filters but bear no valid time of the vendor, so that they keep NIC time. */
  readonly vendorTimeFallbacks: bigint
  /** Packets that come after one with a later time, because the sorting window was too short. */
  readonly latePackets: bigint
  /** maxBytes or maxPackets left packets out. */
  readonly truncated: boolean
  /** When truncated: timestamp, as its record would bear it, of the first packet left out. */
  readonly nextNs: bigint | undefined
}

export interface IntervalCount {
  readonly packets: bigint
  /** As PCAP records: headers and captured bytes. */
  readonly bytes: bigint
}

/** Blocks of the store by smallest timestamp; element i of each array belongs to block i. */
export interface BlockList {
  readonly minNs: BigInt64Array
  /** Inclusive. */
  readonly maxNs: BigInt64Array
  readonly packets: Uint32Array
  /** As PCAP records: headers and captured bytes. */
  readonly bytes: Uint32Array
}

/**
 * A pooled piece of the body, up to 1 MiB (and 4 KiB more when gzip cannot compress it). `bytes` is
 * valid until release(), which must be called; calling it again does nothing.
 */
export interface Chunk {
  readonly bytes: Buffer
  release(): void
}

/** A slab is one Buffer for all its life; the part is its first `length` bytes. */
interface NativePart {
  readonly id: number
  readonly slab: Buffer
  readonly length: number
}

interface NativeDownload {
  readonly linkType: number
  readonly snaplen: number
  next(): Promise<NativePart | undefined>
  release(id: number): void
  totals(): DownloadTotals
  close(): void
}

interface NativeCount {
  /** What lies in each interval. */
  readonly finished: Promise<{ readonly packets: BigUint64Array; readonly bytes: BigUint64Array }>
  cancel(): void
}

const engine = loadAddon<{
  clockNs(): bigint
  isClockSynced(): boolean
  openDownload(options: NativeOptions): { readonly opened: Promise<NativeDownload>; cancel(): void }
  /** 2^63 - 1 stands for the whole capture. */
  lookBackNs(timeSource: number): bigint
  hasMachineCode(): boolean
  countPackets(streams: readonly StreamFiles[], boundariesNs: BigInt64Array): NativeCount
  listBlocks(streams: readonly StreamFiles[]): Promise<BlockList>
}>('capfleet')

/** The program that compiles filter expressions; see native/engine/filter/bpf_compile_main.cc. */
export const bpfCompilerPath = fileURLToPath(new URL('build/capfleet-bpf-compile', import.meta.url))

/** The program that compiles regular expressions; see native/engine/filter/regex_compile_main.cc. */
export const regexCompilerPath = fileURLToPath(new URL('build/capfleet-regex-compile', import.meta.url))

/** The clock of the machine (CLOCK_REALTIME) in nanoseconds since 1970. */
export function clockNs(): bigint {
  return engine.clockNs()
}

/**
 * Whether the kernel reports that a daemon of NTP or PTP keeps that clock. Setting the clock clears this until the
 * daemon has checked it again.
 */
export function isClockSynced(): boolean {
  return engine.isClockSynced()
}

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
   * Reads the first indexes and starts to scan. Rejects with bad-parameter, bad-bpf, bad-regex,
   * mixed-link-type, aged-out (one of the first segments is not there), store-unavailable, store-corrupt, or the
   * signal's reason once the engine has stopped.
   */
  static async open(options: DownloadOptions, signal?: AbortSignal): Promise<Download> {
    signal?.throwIfAborted()
    const job = engine.openDownload(toNativeOptions(options))
    const cancel = (): void => job.cancel()
    signal?.addEventListener('abort', cancel, { once: true })
    try {
      const native = await job.opened
      if (signal?.aborted) native.close()
      signal?.throwIfAborted()
      return new Download(native)
    } catch (error) {
      signal?.throwIfAborted()
      throw error
    } finally {
      signal?.removeEventListener('abort', cancel)
    }
  }

  /**
   * The next piece of the body, undefined at its end; the first is the PCAP file header, or what
   * `afterBytes` leaves of it, which may be no byte. One call at a time. Rejects with store-unavailable when the disk fails, with aged-out when a segment was
   * removed before it was read, with an AbortError once closed.
   * A few pieces may be held at once; the scan stops while too many are not released.
   */
  async next(): Promise<Chunk | undefined> {
    assert(!this.#isWaiting, 'next() was called while another call is waiting')
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

  /**
   * Stops at once, and lets go of all memory once the chunks are released; a waiting next() rejects with an AbortError.
   * May be called again.
   */
  close(): void {
    this.#native.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }
}

/** The whole capture: no time of the vendor is known without its first packet. */
const WHOLE_CAPTURE_NS = 2n ** 63n - 1n

/**
 * How far before a range a download reads to know this source's times, in nanoseconds, or
 * 'whole-capture' when it must read from the first packet on. The segments that reach into
 * [beginNs - lookBackNs, endNs) are what the download needs as `streams`.
 */
export function lookBackNs(source: TimeSource): bigint | 'whole-capture' {
  const backNs = engine.lookBackNs(TIME_SOURCES[source])
  return backNs === WHOLE_CAPTURE_NS ? 'whole-capture' : backNs
}

/** Whether BPF filters run as machine code here; else each packet takes them several times as long. */
export function hasMachineCode(): boolean {
  return engine.hasMachineCode()
}

/**
 * Exact counts of the half-open intervals [boundariesNs[i], boundariesNs[i + 1]): what a download
 * without filter delivers. Reads no packet when boundaries are whole milliseconds, save of blocks
 * whose tally is damaged. A block that is read and damaged is left out, as by a download. Boundaries ascend. Rejects with bad-parameter, store-unavailable,
 * store-corrupt, or the signal's reason.
 */
export async function countPackets(options: {
  readonly streams: readonly StreamFiles[]
  readonly boundariesNs: readonly bigint[]
  readonly signal?: AbortSignal | undefined
}): Promise<readonly IntervalCount[]> {
  const { streams, boundariesNs, signal } = options
  checkBoundaries(boundariesNs)
  signal?.throwIfAborted()
  const job = engine.countPackets(streams, BigInt64Array.from(boundariesNs))
  const cancel = () => job.cancel()
  signal?.addEventListener('abort', cancel, { once: true })
  try {
    const { packets, bytes } = await job.finished
    signal?.throwIfAborted()
    return Array.from(packets, (count, i) => ({ packets: count, bytes: bytes[i] ?? 0n }))
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  } finally {
    signal?.removeEventListener('abort', cancel)
  }
}

/**
 * Every block of the streams, from the indexes alone. Rejects with store-unavailable or
 * store-corrupt.
 */
export async function listBlocks(options: { readonly streams: readonly StreamFiles[] }): Promise<BlockList> {
  return await engine.listBlocks(options.streams)
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
