/** What a worker needs to run exports, and the limits that it applies. */
import type { SharedTime } from '../../shared/base/shared-time.ts'
import type { TimeSourceAliases } from '../../shared/query/time-source.ts'
import type { Audit } from '../audit/audit-log.ts'
import type { Quotas } from '../auth/quotas.ts'
import type { FetchParts } from '../fetch/body/fetch-download.ts'
import type { ExportJobs } from './export-jobs.ts'
import type { ExportOutcomes } from './export-outcomes.ts'
import type { ExportStore } from './export-store.ts'
import type { ScheduleStore } from './schedule-store.ts'
import type { Spool } from './spool.ts'
import type { ExportTarget } from './target/export-target.ts'

export interface ExportParts extends FetchParts {
  readonly quotas: Quotas
  readonly store: ExportStore
  readonly schedules: ScheduleStore
  /** Decides when runs are due and exports expire. */
  readonly clock: SharedTime
  readonly jobs: ExportJobs
  readonly spool: Spool
  /** Targets by name. */
  readonly targets: ReadonlyMap<string, ExportTarget>
  readonly limits: ExportLimits
  readonly ordering: OrderingRules
  readonly outcomes: ExportOutcomes
  readonly audit: Audit
}

/** How orders of schedules are parsed and checked, as a gateway does it for direct orders. */
export interface OrderingRules {
  /** The users file. */
  readonly users: string
  /** IANA name, for local times without TSZone. */
  readonly timeZone: string
  readonly tsModeAliases: TimeSourceAliases
  /** Maximum number of a user's exports that have not ended. */
  readonly perUserMax: number
  /** Maximum number of devices per export. */
  readonly devicesMax: number
}

export interface ExportLimits {
  /** Target size of a span. */
  readonly spanBytes: number
  /** How many bytes may have to be fetched again if a worker dies. */
  readonly checkpointBytes: number
  /** How long an unreadable device is retried. */
  readonly deviceRetryMs: number
  /** How long the files of an export are kept. */
  readonly keepMs: number
  /** Maximum size of the files of all exports; undefined: no limit. */
  readonly keepBytes: number | undefined
  readonly estimateTimeoutMs: number
  /** How long a job waits for a stream before it lets another job try. */
  readonly leaseWaitMs: number
  /** How long a job waits if the disk is full. */
  readonly fullPauseMs: number
}

/** Signals that the job is to be run again later; nothing has failed. */
export class Later extends Error {
  readonly delayMs: number

  constructor(delayMs: number) {
    super(`again in ${delayMs} ms`)
    this.delayMs = delayMs
  }
}
