/**
 * TypeScript interface of the engine: downloads of stored segments, and the contents of their indexes. Arguments are
 * checked here and in download-options.ts; binding/ only checks types. Nanoseconds and counts that can exceed 2^53 are
 * bigint in both directions. All work runs on the engine's threads, never on this one.
 */
import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import {
  checkBoundaries,
  type DownloadOptions,
  type NativeOptions,
  type StreamFiles,
  TIME_SOURCE_NUMBERS,
  type TimeSource,
  toNativeOptions,
} from './download-options.ts'
import { loadAddon } from './load-addon.ts'

/** Live figures of a download; exact once next() has returned undefined. */
export interface DownloadTotals {
  /**
   * Packets returned, and their bytes as PCAP records, or in pcapng as blocks, before compression. Here and in all figures not about output or
   * reading, what `afterBytes` left out counts as returned.
   */
  readonly packets: bigint
  readonly bytes: bigint
  /** Those of `packets` that lie completely before `afterBytes`, and so were not returned. */
  readonly skippedPackets: bigint
  /** Bytes of the returned chunks (compressed, including the file header). */
  readonly outputBytes: bigint
  /** Packets and bytes of the range that the filters were applied to, including those of `passedBlocks`. */
  readonly readPackets: bigint
  readonly readBytes: bigint
  /**
   * Packets read before the last of `packets` that were left out: outside the range, or by a filter. Never decreases.
   */
  readonly excludedPackets: bigint
  /** Packets left out as copies, up to the end or a limit. */
  readonly duplicates: bigint
  /** Blocks that were not read because none of their packets can match the filter. */
  readonly passedBlocks: bigint
  /** Segments of which no file was opened, because none of their packets can match; see `passedBlocks`. */
  readonly ruledOutSegments: bigint
  /** Blocks left out because their checksum did not match, among those that were read. */
  readonly corruptBlocks: bigint
  /** Timestamps of the first and last packet returned; undefined before the first. */
  readonly firstNs: bigint | undefined
  readonly lastNs: bigint | undefined
  /** Packets that match the filters but have no valid vendor time, so that they keep NIC time. */
  readonly vendorTimeFallbacks: bigint
  /** Packets that follow one with a later time, because the sort window was too small. */
  readonly latePackets: bigint
  /** Whether maxBytes or maxPackets cut off packets. */
  readonly truncated: boolean
  /** If truncated: timestamp, as its record would have it, of the first packet cut off. */
  readonly nextNs: bigint | undefined
  /** Only of a pcapng file; complete once next() has returned undefined. */
  readonly pcapng?: PcapngTotals | undefined
}

export interface PcapngTotals {
  /** Packets of each interface, in the order of the interfaces. */
  readonly interfacePackets: readonly bigint[]
  /** How many of the interfaces have been described. */
  readonly describedInterfaces: number
  /** How many of the remarks a packet has. */
  readonly remarkedPackets: number
  /** How many bytes of `afterBytes` are beyond the last packet. */
  readonly leftToSkip: bigint
}

export interface IntervalCount {
  readonly packets: bigint
  /** Bytes of the packets as PCAP records: headers and captured bytes. */
  readonly bytes: bigint
}

/** Blocks of the store by smallest timestamp; element i of each array is about block i. */
export interface BlockList {
  readonly minNs: BigInt64Array
  /** Inclusive. */
  readonly maxNs: BigInt64Array
  readonly packets: Uint32Array
  /** Bytes of the packets as PCAP records: headers and captured bytes. */
  readonly bytes: Uint32Array
}

/**
 * A pooled piece of the body, up to 1 MiB (plus up to 4 KiB if gzip cannot compress it). `bytes` is valid until
 * release(), which must be called; calling it again does nothing.
 */
export interface Chunk {
  readonly bytes: Buffer
  release(): void
}

/** A slab has one Buffer for all its life; the part is its first `length` bytes. */
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
  /** The totals of each interval. */
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
 * Whether the kernel reports that an NTP or PTP daemon synchronizes that clock. Setting the clock clears this until
 * the daemon has checked it again.
 */
export function isClockSynced(): boolean {
  return engine.isClockSynced()
}

/** Stored packets as the bytes of one PCAP or pcapng file, pulled by the caller. */
export class Download implements AsyncDisposable {
  /** Link type word of the PCAP header; of a pcapng file with several, that of its first packets. */
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
   * Reads the first indexes and starts to scan. Rejects with bad-parameter, bad-bpf, bad-regex, mixed-link-type,
   * aged-out (one of the first segments no longer exists), store-unavailable, store-corrupt, or the signal's reason
   * once the engine has stopped.
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
   * The next piece of the body, or undefined at its end; the first is the PCAP file header, or what `afterBytes`
   * leaves of it, which may be empty. One call at a time. Rejects with store-unavailable if the disk fails, with
   * aged-out if a segment was removed before it was read, with an AbortError once closed. A few pieces may be held at
   * once; the scan stops while too many are unreleased.
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
   * Stops at once, and frees all memory once the chunks are released; a pending next() rejects with an AbortError. May
   * be called again.
   */
  close(): void {
    this.#native.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }
}

/** The whole capture: no vendor time can be computed without its first packet. */
const WHOLE_CAPTURE_NS = 2n ** 63n - 1n

/**
 * How far before a range a download must read to compute the times of this source, in nanoseconds, or 'whole-capture'
 * if it must read from the first packet. The segments that overlap [beginNs - lookBackNs, endNs) are what the download
 * needs as `streams`.
 */
export function lookBackNs(source: TimeSource): bigint | 'whole-capture' {
  const backNs = engine.lookBackNs(TIME_SOURCE_NUMBERS[source])
  return backNs === WHOLE_CAPTURE_NS ? 'whole-capture' : backNs
}

/** Whether BPF filters run as machine code here; otherwise each packet takes several times as long. */
export function hasMachineCode(): boolean {
  return engine.hasMachineCode()
}

/**
 * Exact counts for the half-open intervals [boundariesNs[i], boundariesNs[i + 1]): what a download without filter
 * returns. Reads no packets if boundaries are whole milliseconds, except in blocks whose tally is damaged. A block
 * that is read and damaged is left out, as by a download. Boundaries must ascend. Rejects with bad-parameter,
 * store-unavailable, store-corrupt, or the signal's reason.
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
