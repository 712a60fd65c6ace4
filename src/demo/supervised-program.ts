import { setTimeout as delay } from 'node:timers/promises'
import type { ChildProgram } from './child-program.ts'

/** A program that dies sooner than this after its start is given a while before the next one. */
const SHORT_LIFE_MS = 5_000
const PAUSE_MS = 1_000

export interface SupervisedProgramOptions {
  /** The first start, and each one after it. */
  readonly start: (isRestart: boolean) => Promise<ChildProgram>
  readonly onRestart: (ended: ChildProgram) => void
  readonly stopGraceMs: number
}

/** A program that is started again whenever it ends, at once, until dispose. */
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

  /** Fails when the first start does. */
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
    // One that was just being started.
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
      // One that does not start is as good as one that has ended at once.
      this.#program = await this.#options.start(true).catch(() => this.#program)
    }
  }
}
