import type { DuplicateWindow } from './duplicate-window.ts'
import type { RecordWindow } from './record-window.ts'

export interface RecordLimits {
  readonly maxPackets?: bigint | undefined
  /** Of the records with their headers, without the file header. */
  readonly maxBytes?: bigint | undefined
}

/** A record as it stands at the front of the merge. */
export interface FrontRecord {
  readonly window: RecordWindow
  /** The input's number. */
  readonly rank: number
  /** Timestamps rise with it; see ReadyMerger. */
  readonly key: number
}

/**
 * Looks at each record before it goes into the merged stream: leaves out duplicates, and ends the
 * stream before the first record that goes over a limit. Needed only when there is something to
 * look at: it costs a step per packet.
 */
export class RecordGate {
  readonly #duplicates: DuplicateWindow | undefined
  #packetsLeft: number
  #bytesLeft: number

  /** At least one of them should be there. */
  constructor(limits: RecordLimits, duplicates: DuplicateWindow | undefined) {
    this.#duplicates = duplicates
    this.#packetsLeft = Number(limits.maxPackets ?? Number.POSITIVE_INFINITY)
    this.#bytesLeft = Number(limits.maxBytes ?? Number.POSITIVE_INFINITY)
  }

  judge(record: FrontRecord): 'pass' | 'duplicate' | 'stop' {
    if (this.#duplicates?.hasSeen(record) === true) return 'duplicate'
    const { front, frontEnd } = record.window
    const bytes = frontEnd - front
    if (this.#packetsLeft === 0 || bytes > this.#bytesLeft) return 'stop'
    this.#packetsLeft--
    this.#bytesLeft -= bytes
    this.#duplicates?.add(record)
    return 'pass'
  }

  /** Keys are smaller by so much from now on. */
  rebase(units: number): void {
    this.#duplicates?.rebase(units)
  }
}

/** What the timestamp of a record says, in nanoseconds. */
export function timestampNs(view: DataView, start: number, nanoseconds: boolean): bigint {
  const fraction = BigInt(view.getUint32(start + 4, true))
  return BigInt(view.getUint32(start, true)) * 1_000_000_000n + (nanoseconds ? fraction : fraction * 1_000n)
}
