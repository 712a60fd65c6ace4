import type { Log } from '../../src/shared/base/log.ts'
import type { EventSink } from '../events/event-log.ts'
import type { CaptureState } from '../link/capture-report.ts'

export interface CaptureProcessStateOptions {
  readonly events: EventSink
  readonly log: Log
}

/** The state of the capture process, and what was said of its failures. */
export class CaptureProcessState {
  readonly #options: CaptureProcessStateOptions
  #state: CaptureState = 'idle'
  #message = ''
  /** The failure that was told last. */
  #told = ''

  constructor(options: CaptureProcessStateOptions) {
    this.#options = options
  }

  get state(): CaptureState {
    return this.#state
  }

  /** Why it is as it is; "" = all is well. */
  get message(): string {
    return this.#message
  }

  enter(state: CaptureState, name: string): void {
    this.#state = state
    this.#message = ''
    if (state === 'running' || state === 'idle') this.#told = ''
    this.#options.log.info('capture.state', { state, name })
  }

  fail(state: CaptureState, error: unknown, name: string): void {
    this.#state = state
    this.#message = this.tell(error, name)
  }

  /** By an event, unless it is what was told last: a capture that cannot begin is tried for ever. */
  tell(error: unknown, name: string): string {
    const message = error instanceof Error ? error.message : String(error)
    if (message !== this.#told) {
      this.#options.log.error('capture.failed', { name, err: error })
      this.#options.events.append('capture-failed', { name, message })
    }
    this.#told = message
    return message
  }
}
