/**
 * Damage found by downloads: the recorder is asked to check those segments, so that it appears in the list, the
 * metrics, the events and the heads of later downloads.
 */
import { takeSuspects } from '../../native/stored-segments.ts'
import type { Log } from '../../src/shared/base/log.ts'
import type { RecorderClient } from '../link/recorder-client.ts'
import { type StoredSegmentPlace, segmentOfPath } from '../store/store-paths.ts'

export interface DamageReportParts {
  readonly recorder: Pick<RecorderClient, 'checkSegment'>
  /** The folder of all captures. */
  readonly captures: string
  readonly log: Log
}

export class DamageReports {
  readonly #parts: DamageReportParts
  readonly #waiting = new Map<string, StoredSegmentPlace>()
  #sending: Promise<void> | undefined

  constructor(parts: DamageReportParts) {
    this.#parts = parts
  }

  /**
   * Reports what downloads have found since the last call. Resolves when the recorder has checked it, or cannot be
   * asked: the next call then tries again. Never rejects.
   */
  async send(): Promise<void> {
    for (const path of takeSuspects()) {
      const place = segmentOfPath(this.#parts.captures, path)
      if (place !== undefined) this.#waiting.set(path, place)
    }
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
    })
    await this.#sending
  }

  async #sendAll(): Promise<void> {
    const { recorder, log } = this.#parts
    for (const [path, place] of this.#waiting) {
      try {
        const findings = await recorder.checkSegment(place)
        this.#waiting.delete(path)
        for (const { file, message } of findings) log.warn('store.damaged', { ...place, file, message })
      } catch (err) {
        log.warn('store.damage-not-reported', { ...place, err })
        return
      }
    }
  }
}
