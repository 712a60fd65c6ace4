import type { Log } from '../../../src/shared/base/log.ts'
import type { EventSink } from '../../events/event-log.ts'
import type { CaptureState } from '../../link/capture-report.ts'

export interface CaptureProcessStateOptions {
  readonly events: EventSink
  readonly log: Log
}

/** The state of the capture process, and its reported failures. */
export class CaptureProcessState {
  readonly #options: CaptureProcessStateOptions
  #state: CaptureState = 'idle'
  #message = ''
  /** The last failure that was reported. */
  #told = ''

  constructor(options: CaptureProcessStateOptions) {
    this.#options = options
  }

  get state(): CaptureState {
    return this.#state
  }

  /** The reason for the state; "" = all is well. */
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

  /** Reports it by an event, unless it was the last one reported: a capture that cannot start is retried forever. */
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
