import { CapfleetError } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { Metrics } from '../base/metrics.ts'
import type { UploadSettings } from '../base/setting-schemas.ts'
import { type UploadContext, UploadedBody } from './uploaded-body.ts'

/** How an upload ended. refused: because of the request or the file. failed: because of a device or this program. */
export type UploadOutcome = 'complete' | 'refused' | 'failed' | 'client-gone'

type Facts = Readonly<Record<string, unknown>>

/** An upload in progress; disposing it returns its place. */
export interface RunningUpload extends Disposable {
  end(outcome: UploadOutcome, facts: Facts): void
}

interface UploadsParts {
  readonly settings: UploadSettings
  readonly metrics: Metrics
  readonly log: Log
}

const OUTCOMES: readonly UploadOutcome[] = ['complete', 'refused', 'failed', 'client-gone']
const RETRY_AFTER_S = 30

/**
 * The uploads in progress: limited in number, because each takes disk space and time of a recorder; counted; and
 * logged when they begin and end.
 */
export class RunningUploads {
  readonly #settings: UploadSettings
  readonly #log: Log
  readonly #ended
  readonly #bytes
  /** By user; there is no entry for 0. */
  readonly #running = new Map<string, number>()

  constructor({ settings, metrics, log }: UploadsParts) {
    this.#settings = settings
    this.#log = log
    this.#ended = metrics.counter(
      'uploads_total',
      'Ended uploads of capture files',
      ['outcome'],
      OUTCOMES.map((outcome) => ({ outcome })),
    )
    this.#bytes = metrics.counter('upload_bytes_total', 'Bytes of uploaded files, as received')
    metrics.gauge('uploads_running', 'Uploads of capture files in progress', [], (gauge) =>
      gauge.set(this.#total),
    )
  }

  /** Fails like the constructor of UploadedBody. */
  bodyOf(ctx: UploadContext): UploadedBody {
    return new UploadedBody(ctx, { ...this.#settings, onBytes: (bytes) => this.#bytes.inc(bytes) })
  }

  /** Takes a place. Fails with too-many-requests, or with not-implemented if uploads are disabled. */
  begin(user: string, facts: Facts): RunningUpload {
    const startedMs = performance.now()
    this.#refuseIfFull(user)
    this.#add(user, 1)
    this.#log.info('upload.begin', facts)
    return {
      end: (outcome, more) => {
        this.#ended.inc({ outcome })
        const durationMs = Math.round(performance.now() - startedMs)
        this.#log.info('upload.end', { ...facts, outcome, durationMs, ...more })
      },
      [Symbol.dispose]: () => this.#add(user, -1),
    }
  }

  get #total(): number {
    return this.#running.values().reduce((sum, running) => sum + running, 0)
  }

  #add(user: string, change: 1 | -1): void {
    const running = (this.#running.get(user) ?? 0) + change
    if (running === 0) this.#running.delete(user)
    else this.#running.set(user, running)
  }

  #refuseIfFull(user: string): void {
    const { runningMax, perUserMax } = this.#settings
    if (runningMax === 0)
      throw new CapfleetError('not-implemented', 'uploads are disabled here (uploads.runningMax is 0)')
    const ofUser = this.#running.get(user) ?? 0
    if (ofUser >= perUserMax) throw tooMany(`${ofUser} of your uploads are already running`, 'perUserMax')
    if (this.#total >= runningMax) throw tooMany(`${this.#total} uploads are already running`, 'runningMax')
  }
}

function tooMany(what: string, setting: keyof UploadSettings): CapfleetError {
  return new CapfleetError(
    'too-many-requests',
    `${what}, which is the limit (uploads.${setting}); try again when one has ended`,
    { retryAfterS: RETRY_AFTER_S },
  )
}
