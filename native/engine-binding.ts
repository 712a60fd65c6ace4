/**
 * The compiled engine as it comes out of native/binding: loads the binary and says what it exports.
 * Only the files beside this one use it; they check every argument, the binary trusts them.
 */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { CapfleetError, type ErrorCode } from '../src/base/error.ts'
import type { BlockList, DownloadTotals } from './addon.ts'
import type { ImportOptions, ImportProgress, ImportResult } from './import-capture-files.ts'
import type {
  LiveCaptureOptions,
  LiveCounts,
  LiveStream,
  RecoveredStream,
  RecoveryOptions,
} from './live-capture.ts'
import type { RecordFigures, RecordMarks } from './record-merge.ts'
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

export interface NativeRecordInput {
  show(bytes: Uint8Array): boolean
  forget(): void
  hasRecord(): boolean
  skip(count: number, isHashed: boolean): number
  skippedHash(): bigint
  impossibleLength(): number | undefined
  partialBytes(): number
  untaken(): Buffer
  figures(): RecordFigures
  marks(): RecordMarks
}

export interface NativeRecordMerge {
  advance(output: Uint8Array, written: number): number
  state(): number
  dryInput(): number
  refilled(): void
  nextNs(): bigint | undefined
  dropped(input: number): { readonly packets: number; readonly bytes: number }
}

interface NativeMergeOptions {
  readonly maxSpanNs: bigint | undefined
  readonly maxPackets: bigint | undefined
  readonly maxBytes: bigint | undefined
  readonly dedupNs: bigint | undefined
  readonly linkType: number
}

/** The exports of native/binding/addon.cc. */
interface EngineBinding {
  initialize(makeError: (code: ErrorCode | 'cancelled', message: string) => Error): void
  clockNs(): bigint
  openDownload(options: NativeOptions): Promise<NativeDownload>
  /** 2^63 - 1 stands for the whole capture. */
  lookBackNs(timeSource: number): bigint
  countPackets(streams: readonly (readonly string[])[], boundariesNs: BigInt64Array): NativeCount
  listBlocks(streams: readonly (readonly string[])[]): Promise<BlockList>
  openLiveCapture(options: LiveCaptureOptions): Promise<NativeLiveCapture>
  readonly RecordInput: new (options: {
    readonly nanoseconds: boolean
    readonly alignNs: bigint
    readonly marksTail: boolean
  }) => NativeRecordInput
  readonly RecordMerge: new (
    inputs: readonly NativeRecordInput[],
    options: NativeMergeOptions,
  ) => NativeRecordMerge
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

function makeError(code: ErrorCode | 'cancelled', message: string): Error {
  if (code === 'cancelled') return new DOMException(message, 'AbortError')
  return new CapfleetError(code, message)
}

function loadEngine(): EngineBinding {
  const path = fileURLToPath(new URL('build/capfleet.node', import.meta.url))
  try {
    const loaded: EngineBinding = createRequire(import.meta.url)(path)
    loaded.initialize(makeError)
    return loaded
  } catch (cause) {
    throw new Error(`the engine ${path} does not load; build it with: node .ci/setup.mjs`, { cause })
  }
}

export const engine: EngineBinding = loadEngine()
