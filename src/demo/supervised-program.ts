import { setTimeout as delay } from 'node:timers/promises'
import type { ChildProgram } from './child-program.ts'

/** A program that dies sooner than this is restarted only after a delay. */
const SHORT_LIFE_MS = 5_000
const PAUSE_MS = 1_000

export interface SupervisedProgramOptions {
  /** Starts the program, the first time or again. */
  readonly start: (isRestart: boolean) => Promise<ChildProgram>
  readonly onRestart: (ended: ChildProgram) => void
  readonly stopGraceMs: number
}

/** A program that is restarted immediately whenever it ends, until disposed. */
export class SupervisedProgram implements AsyncDisposable {
  readonly #options: SupervisedProgramOptions
  readonly #stop = new AbortController()
  readonly #watching: Promise<void>
  #program: ChildProgram

  private constructor(options: SupervisedProgramOptions, program: ChildProgram) {
    this.#options = options
    this.#program = program
    this.#watching = this.#watch()
  }

  /** Fails if the first start does. */
  static async start(options: SupervisedProgramOptions): Promise<SupervisedProgram> {
    return new SupervisedProgram(options, await options.start(false))
  }

  get pid(): number {
    return this.#program.pid
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#program.stop(this.#options.stopGraceMs)
    await this.#watching
    // It may just have been restarted.
    await this.#program.stop(this.#options.stopGraceMs)
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      const startedMs = performance.now()
      await this.#program.ended
      if (signal.aborted) return
      this.#options.onRestart(this.#program)
      const isShort = performance.now() - startedMs < SHORT_LIFE_MS
      if (isShort) await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      // A failed start counts as a program that ended at once.
      this.#program = await this.#options.start(true).catch(() => this.#program)
    }
  }
}
