import type { Log } from '../../../shared/base/log.ts'
import type { LiveLimit } from '../../../shared/http/live-limit.ts'
import type { AuditLog } from '../../audit/audit-log.ts'
import type { Quotas } from '../../auth/quotas.ts'
import type { ExportChanges } from '../../export/export-changes.ts'
import type { ExportParts } from '../../export/export-parts.ts'
import type { WholeExport } from '../../export/export-record.ts'
import type { SharedAnswers } from '../../fleet/captures/shared-answers.ts'
import type { DownloadParts } from '../../serve/serve-download.ts'
import type { RequestParts } from '../request/request-parts.ts'

/** The parts used by handlers of exports and schedules. */
export interface ExportsParts extends RequestParts {
  readonly downloads: Pick<DownloadParts, 'fleet' | 'running' | 'metrics' | 'clientIdleTimeoutMs'>
  readonly exports: ExportHandling
  readonly quotas: Quotas
  readonly audit: Pick<AuditLog, 'record'>
  readonly log: Log
}

/** The parts used by handlers of exports. */
export interface ExportHandling
  extends Pick<ExportParts, 'store' | 'schedules' | 'clock' | 'jobs' | 'targets'> {
  readonly changes: ExportChanges
  /** Records for followers, read once for all of them. */
  readonly records: SharedAnswers<WholeExport | undefined>
  /** Maximum number of followers of exports. */
  readonly followers: LiveLimit
  /** Whether exports are enabled. */
  readonly isEnabled: boolean
  /** Maximum number of a user's exports that have not ended. */
  readonly perUserMax: number
  /** Maximum number of devices per export. */
  readonly devicesMax: number
}
