import type { LogEntry } from '../../../native/segment-entry.ts'
import { removeSegment } from '../../../native/stored-segments.ts'
import type { EventSink } from '../../events/event-log.ts'
import { pathOf } from '../../store/stored-capture.ts'
import type { HeldCapture } from '../writer/held-capture.ts'
import type { StoreWriter } from '../writer/store-writer.ts'
import type { Removal } from './removal-queue.ts'
import { type Lack, plus } from './store-room.ts'

export type RemovalReason = 'age' | 'space'

/** Files of a segment that is in no log any more. */
export interface UnnamedFiles {
  readonly capture: HeldCapture
  /** Path of the segment without ending. */
  readonly path: string
  readonly bytes: bigint
}

interface WaitingFiles extends UnnamedFiles {
  readonly sinceMs: number
  /** Why the disk did not remove them; '' = a reader has them open. */
  readonly failure: string
}

export interface SegmentRemoverOptions {
  readonly writer: StoreWriter
  readonly events: EventSink
  /** How long a segment that is being read keeps its files. */
  readonly pinMs: number
  /** Aborts when the recorder ends: the next one removes what is left. */
  readonly signal: AbortSignal
}

/** The files of a removed segment: its packets, index, tally and sieves. */
const FILES_PER_SEGMENT = 4n
/**
 * If the disk accepts log entries but removes no files, not all segments must be lost: after this many failures no
 * further ones are removed.
 */
const FAILED_MAX = 16

/**
 * Removes segments: first from their capture's log, durably, then their files, so that a crash leaves files that are
 * in no log and never the reverse. Files that a reader has open, or that the disk does not remove, are retried at each
 * retry(). One call at a time.
 */
export class SegmentRemover {
  readonly #options: SegmentRemoverOptions
  #waiting: WaitingFiles[] = []
  /** Number of failures since the last retry(), and the first of them. */
  #failures = 0
  #failure = ''
  /** Whether remove() was called since the last retry(). */
  #hasBegun = false
  /** Why a record could not be changed when room was last made; '' = all could. */
  #refusal = ''

  constructor(options: SegmentRemoverOptions) {
    this.#options = options
  }

  /** Bytes of files that are in no log any more, and still exist. */
  get waitingBytes(): bigint {
    return this.#waiting.reduce((sum, { bytes }) => sum + bytes, 0n)
  }

  /** The current problem; '' = none. A record that could not be changed counts until room is made again. */
  get problem(): string {
    const undeleted = this.#waiting.find(({ failure }) => failure !== '')
    return this.#failure || (undeleted?.failure ?? this.#refusal)
  }

  /** Whether further segments may be removed. */
  get isAble(): boolean {
    const undeleted = this.#waiting.filter(({ failure }) => failure !== '').length
    return !this.#options.signal.aborted && undeleted + this.#failures < FAILED_MAX
  }

  /** Whether files of a removed segment of this capture still exist. */
  hasFilesOf(capture: HeldCapture): boolean {
    return this.#waiting.some((files) => files.capture === capture)
  }

  /** Captures whose files the disk does not remove. */
  get failing(): ReadonlySet<string> {
    return new Set(
      this.#waiting.flatMap(({ capture, failure }) => (failure === '' ? [] : [capture.record.name])),
    )
  }

  /** Adds files that an earlier recorder did not get to remove. */
  addLeftovers(files: UnnamedFiles): void {
    this.#waiting.push({ ...files, sinceMs: performance.now(), failure: '' })
  }

  /** Another step of the removal has failed; reported until the next retry(). */
  noteFailure(error: unknown): void {
    this.#failures += 1
    this.#failure ||= describe(error)
  }

  /** Tries again to remove the remaining files. */
  async retry(): Promise<void> {
    this.#failures = 0
    this.#failure = ''
    this.#hasBegun = false
    const waiting = this.#waiting
    this.#waiting = []
    for (const [index, files] of waiting.entries()) {
      if (this.#options.signal.aborted) {
        this.#waiting.push(...waiting.slice(index))
        return
      }
      await this.#removeFiles(files)
    }
  }

  /**
   * Removes these segments of one capture with one change of its log. Returns what this frees now, or undefined if the
   * log could not be changed, in which case nothing has been done.
   */
  async remove(
    capture: HeldCapture,
    removals: readonly Removal<LogEntry>[],
    reason: RemovalReason,
  ): Promise<Lack | undefined> {
    const { writer, signal } = this.#options
    if (!this.#hasBegun) this.#refusal = ''
    this.#hasBegun = true
    try {
      await writer.dropSegments(
        capture,
        removals.map(({ segment }) => segment),
      )
    } catch (error) {
      this.#failures += 1
      this.#refusal ||= describe(error)
      return undefined
    }
    let freed: Lack = { stored: 0n, disk: 0n, files: 0n }
    for (const removal of removals) {
      this.#report(removal, reason)
      const path = pathOf(capture.folder, removal.segment)
      const files = { capture, path, bytes: sizeOf(removal.segment), sinceMs: performance.now(), failure: '' }
      if (signal.aborted) this.#waiting.push(files)
      else if (await this.#removeFiles(files)) {
        freed = plus(freed, freedBy(removal.segment))
      }
    }
    return freed
  }

  async #removeFiles(files: WaitingFiles): Promise<boolean> {
    const evenIfRead = performance.now() - files.sinceMs >= this.#options.pinMs
    try {
      // undefined: all files of the capture are gone, and the path may be that of another one.
      const isRemoved = await files.capture.use(() => removeSegment(files.path, { evenIfRead }))
      if (isRemoved !== false) return true
      this.#waiting.push({ ...files, failure: '' })
    } catch (error) {
      this.#waiting.push({ ...files, failure: describe(error) })
    }
    return false
  }

  #report({ name, port, segment }: Removal<LogEntry>, reason: RemovalReason): void {
    this.#options.events.append('segment-removed', {
      name,
      port,
      segment: segment.number,
      packets: String(segment.packets),
      bytes: String(sizeOf(segment)),
      beginNs: String(segment.minNs),
      endNs: String(segment.maxNs + 1n),
      reason,
    })
  }
}

/** What the removal of this segment frees. */
export function freedBy(segment: LogEntry): Lack {
  const bytes = sizeOf(segment)
  return { stored: bytes, disk: bytes, files: FILES_PER_SEGMENT }
}

function sizeOf({ bytes, sideBytes }: LogEntry): bigint {
  return bytes + BigInt(sideBytes)
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
