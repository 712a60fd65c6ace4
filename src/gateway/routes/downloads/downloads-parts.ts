import type { LiveLimit } from '../../../shared/http/live-limit.ts'
import type { SearchParts } from '../../fetch/device-search.ts'
import type { DownloadParts } from '../../serve/serve-download.ts'
import type { ExportsParts } from '../exports/exports-parts.ts'
import type { SeenOutcomes } from './seen-outcomes.ts'

/**
 * The parts used by handlers of downloads, searches, estimates, the queue and receipts. A download may be ordered as an
 * export.
 */
export interface DownloadsParts extends ExportsParts {
  readonly downloads: DownloadParts
  readonly seen: SeenHandling
}

export interface SeenHandling extends SearchParts {
  /** Requests that search. */
  readonly running: LiveLimit
  readonly outcomes: SeenOutcomes
}
