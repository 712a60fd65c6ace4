/** Limits the disk space that lines about refused requests may use. */
import { statfs } from 'node:fs/promises'

export interface RefusalLimits {
  readonly folder: string
  readonly refusalBytesPerDay: number
  readonly reserveBytes: number
}

export interface RefusalBudgetParts {
  readonly now: () => Date
  readonly countSkipped: () => void
}

/** Bytes of a line besides its event: number, time and hashes. */
const LINE_OVERHEAD_BYTES = 256
/** How long a reading of the free space is reused. */
const LOOK_MS = 1_000

export class RefusalBudget {
  readonly #limits: RefusalLimits
  readonly #parts: RefusalBudgetParts
  #day = ''
  #bytes = 0
  #lookedMs = Number.NEGATIVE_INFINITY
  #hasReserve: Promise<boolean> = Promise.resolve(false)

  constructor(limits: RefusalLimits, parts: RefusalBudgetParts) {
    this.#limits = limits
    this.#parts = parts
  }

  /** Whether a line with an event of this many bytes may be written. */
  async take(eventBytes: number): Promise<boolean> {
    const day = this.#parts.now().toISOString().slice(0, 10)
    if (day !== this.#day) this.#bytes = 0
    this.#day = day
    const bytes = eventBytes + LINE_OVERHEAD_BYTES
    const isWithin = this.#bytes + bytes <= this.#limits.refusalBytesPerDay
    if (isWithin) this.#bytes += bytes
    if (isWithin && (await this.#hasRoom())) return true
    this.#parts.countSkipped()
    return false
  }

  /** Whether the disk has more free space than the reserve. */
  #hasRoom(): Promise<boolean> {
    const nowMs = performance.now()
    if (nowMs - this.#lookedMs < LOOK_MS) return this.#hasReserve
    this.#lookedMs = nowMs
    this.#hasReserve = statfs(this.#limits.folder).then(
      ({ bavail, bsize }) => bavail * bsize > this.#limits.reserveBytes,
      () => false,
    )
    return this.#hasReserve
  }
}
