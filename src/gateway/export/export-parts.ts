/** What a worker runs exports with, and the limits that it keeps. */
import type { SharedTime } from '../../shared/base/shared-time.ts'
import type { TimeSourceAliases } from '../../shared/query/time-source.ts'
import type { Audit } from '../audit/audit-log.ts'
import type { Quotas } from '../auth/quotas.ts'
import type { FetchParts } from '../fetch/fetch-download.ts'
import type { ExportJobs } from './export-jobs.ts'
import type { ExportOutcomes } from './export-outcomes.ts'
import type { ExportStore } from './export-store.ts'
import type { Spool } from './files/spool.ts'
import type { ScheduleStore } from './schedule-store.ts'
import type { ExportTarget } from './target/export-target.ts'

export interface ExportParts extends FetchParts {
  readonly quotas: Quotas
  readonly store: ExportStore
  readonly schedules: ScheduleStore
  /** By which runs are due, and exports expire. */
  readonly clock: SharedTime
  readonly jobs: ExportJobs
  readonly spool: Spool
  /** By name. */
  readonly targets: ReadonlyMap<string, ExportTarget>
  readonly limits: ExportLimits
  readonly ordering: OrderingRules
  readonly outcomes: ExportOutcomes
  readonly audit: Audit
}

/** What the orders of schedules are read and judged by, as those that a gateway takes. */
export interface OrderingRules {
  /** The file of the users. */
  readonly users: string
  /** IANA name, for local times without TSZone. */
  readonly timeZone: string
  readonly tsModeAliases: TimeSourceAliases
  /** Exports of one user that have not ended. */
  readonly perUserMax: number
  /** Devices of one export. */
  readonly devicesMax: number
}

export interface ExportLimits {
  /** What a span should have at most. */
  readonly spanBytes: number
  /** How many bytes a worker that dies may have fetched for nothing. */
  readonly checkpointBytes: number
  /** How long a device that cannot be read is asked again. */
  readonly deviceRetryMs: number
  /** How long the files of an export are kept. */
  readonly keepMs: number
  /** How many bytes the files of all exports may have; undefined: no limit. */
  readonly keepBytes: number | undefined
  readonly estimateTimeoutMs: number
  /** How long a job waits for a stream before it lets another one try. */
  readonly leaseWaitMs: number
  /** How long a job waits when the disk is full. */
  readonly fullPauseMs: number
}

/** The job is to be run again later; nothing went wrong with it. */
export class Later extends Error {
  readonly delayMs: number

  constructor(delayMs: number) {
    super(`again in ${delayMs} ms`)
    this.delayMs = delayMs
  }
}
