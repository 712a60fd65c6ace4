import type { Log } from '../../../shared/base/log.ts'
import type { LiveLimit } from '../../../shared/http/live-limit.ts'
import type { AuditLog } from '../../audit/audit-log.ts'
import type { Quotas } from '../../auth/quotas.ts'
import type { ExportChanges } from '../../export/export-changes.ts'
import type { ExportParts } from '../../export/export-parts.ts'
import type { WholeExport } from '../../export/export-record.ts'
import type { SharedAnswers } from '../../fleet/shared-answers.ts'
import type { DownloadParts } from '../../serve/serve-download.ts'
import type { RequestParts } from '../request/request-parts.ts'

/** What exports and schedules take. */
export interface ExportsParts extends RequestParts {
  readonly downloads: Pick<DownloadParts, 'fleet' | 'running' | 'metrics' | 'clientIdleTimeoutMs'>
  readonly exports: ExportHandling
  readonly quotas: Quotas
  readonly audit: Pick<AuditLog, 'record'>
  readonly log: Log
}

/** What the handlers of exports work with. */
export interface ExportHandling
  extends Pick<ExportParts, 'store' | 'schedules' | 'clock' | 'jobs' | 'targets'> {
  readonly changes: ExportChanges
  /** What followers read, once for all of them. */
  readonly records: SharedAnswers<WholeExport | undefined>
  /** How many may follow exports. */
  readonly followers: LiveLimit
  /** Whether there is anybody to make them. */
  readonly isEnabled: boolean
  /** Exports of one user that have not ended. */
  readonly perUserMax: number
  /** Devices of one export. */
  readonly devicesMax: number
}
