import type { LiveLimit } from '../../../shared/http/live-limit.ts'
import type { LineParts } from '../../fetch/lines/line-answer.ts'
import type { SearchParts } from '../../fetch/search/device-search.ts'
import type { RunningQuestions } from '../../serve/running-questions.ts'
import type { DownloadParts } from '../../serve/serve-download.ts'
import type { ExportsParts } from '../exports/exports-parts.ts'
import type { CountOutcomes } from './count-outcomes.ts'
import type { SeenOutcomes } from './seen-outcomes.ts'

/**
 * The parts used by handlers of downloads, searches, estimates, counts, the queue and receipts. A download may be ordered as an
 * export.
 */
export interface DownloadsParts extends ExportsParts {
  readonly downloads: DownloadParts
  readonly questions: RunningQuestions
  readonly seen: SeenHandling
  readonly counts: CountHandling
}

export interface SeenHandling extends SearchParts {
  /** Requests that search. */
  readonly running: LiveLimit
  readonly outcomes: SeenOutcomes
}

export interface CountHandling extends LineParts {
  /** Requests that count. */
  readonly running: LiveLimit
  readonly outcomes: CountOutcomes
}
