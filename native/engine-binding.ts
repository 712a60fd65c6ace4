/** What the addon of the appliance exports. Only the files beside this one use it. */
import type { BlockList, DownloadTotals } from './addon.ts'
import type { ImportOptions, ImportProgress, ImportResult } from './import-capture-files.ts'
import type {
  LiveCaptureOptions,
  LiveCounts,
  LiveStream,
  RecoveredStream,
  RecoveryOptions,
} from './live-capture.ts'
import { loadAddon } from './load-addon.ts'
import type { SegmentExtent } from './stored-segments.ts'

export interface NativeOptions {
  readonly streams: readonly (readonly string[])[]
  readonly growingSegments: readonly string[]
  readonly beginNs: bigint
  readonly endNs: bigint
  readonly frameFilter: readonly NativeCondition[]
  readonly filter: Uint8Array | undefined
  readonly filterDecap: boolean
  readonly regex: Uint8Array | undefined
  readonly timeSource: number
  readonly mac48LimitNs: bigint | undefined
  readonly sliceBytes: number
  readonly tsMaxNs: bigint | undefined
  readonly maxBytes: bigint | undefined
  readonly maxPackets: bigint | undefined
  readonly afterBytes: bigint
  readonly toMicroseconds: boolean
  readonly codec: number
  readonly level: number
  readonly emptyLinkType: number
}

interface NativeCondition {
  readonly field: number
  readonly excludes: boolean
  readonly values: readonly number[]
}

/** A slab is one Buffer for all its life; the part is its first `length` bytes. */
export interface NativePart {
  readonly id: number
  readonly slab: Buffer
  readonly length: number
}

export interface NativeDownload {
  readonly linkType: number
  readonly snaplen: number
  next(): Promise<NativePart | undefined>
  release(id: number): void
  totals(): DownloadTotals
  close(): void
}

interface NativeCount {
  /** Of each interval. */
  readonly finished: Promise<{ readonly packets: BigUint64Array; readonly bytes: BigUint64Array }>
  cancel(): void
}

interface NativeImport {
  readonly finished: Promise<ImportResult>
  cancel(): void
}

export interface NativeLiveCapture {
  start(folder: string): Promise<void>
  roll(folder: string): Promise<readonly LiveStream[]>
  stop(): Promise<readonly LiveStream[]>
  finished(): readonly LiveStream[]
  counts(): LiveCounts
  /** Nothing may be called after it. */
  close(): void
}

/** The exports of native/binding/addon.cc. */
interface EngineBinding {
  clockNs(): bigint
  openDownload(options: NativeOptions): Promise<NativeDownload>
  /** 2^63 - 1 stands for the whole capture. */
  lookBackNs(timeSource: number): bigint
  countPackets(streams: readonly (readonly string[])[], boundariesNs: BigInt64Array): NativeCount
  listBlocks(streams: readonly (readonly string[])[]): Promise<BlockList>
  openLiveCapture(options: LiveCaptureOptions): Promise<NativeLiveCapture>
  recoverStream(options: RecoveryOptions): Promise<RecoveredStream>
  measureSegment(segment: string, known: SegmentExtent | undefined): Promise<SegmentExtent>
  removeSegment(segment: string, evenIfRead: boolean): Promise<boolean>
  startImport(
    options: Omit<Required<ImportOptions>, 'signal' | 'onProgress' | 'segmentBytes' | 'maxRatio'> & {
      readonly segmentBytes: number
      readonly maxRatio: number
    },
    onProgress: (progress: ImportProgress) => void,
  ): NativeImport
}

export const engine: EngineBinding = loadAddon('capfleet')
