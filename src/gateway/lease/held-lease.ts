import type { Lease, RequeueOptions } from './lease.ts'
import type { LeaseEntry } from './lease-entry.ts'

/** The scheduler's operations for the holder of an entry. */
export interface LeaseActions {
  opened(entry: LeaseEntry): void
  reopening(entry: LeaseEntry): void
  requeue(entry: LeaseEntry, busy: string, options: RequeueOptions): Promise<void>
  giveBack(entry: LeaseEntry): Promise<void>
}

/** A granted entry as its holder sees it. A class, so that thousands of them share their functions. */
export class HeldLease implements Lease {
  readonly waitedMs: number
  readonly #entry: LeaseEntry
  readonly #actions: LeaseActions

  constructor(entry: LeaseEntry, actions: LeaseActions) {
    this.waitedMs = performance.now() - entry.startedMs
    this.#entry = entry
    this.#actions = actions
  }

  get id(): string {
    return this.#entry.request.id
  }

  get devices(): readonly string[] {
    return this.#entry.request.devices
  }

  get user(): string {
    return this.#entry.request.user
  }

  get lost(): AbortSignal {
    return this.#entry.lost.signal
  }

  opened(): void {
    this.#actions.opened(this.#entry)
  }

  reopening(): void {
    this.#actions.reopening(this.#entry)
  }

  requeue(busy: string, options: RequeueOptions): Promise<void> {
    return this.#actions.requeue(this.#entry, busy, options)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#actions.giveBack(this.#entry)
  }
}
