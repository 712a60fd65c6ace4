import type { DownloadParts } from '../../serve/serve-download.ts'
import type { ExportsParts } from '../exports/exports-parts.ts'

/**
 * The parts used by handlers of downloads, estimates, the queue and receipts. A download may be ordered as an export.
 */
export interface DownloadsParts extends ExportsParts {
  readonly downloads: DownloadParts
}
