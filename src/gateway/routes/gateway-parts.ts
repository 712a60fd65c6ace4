import type { Vouchers } from '../../shared/auth/authenticate.ts'
import type { SpanSink } from '../../shared/base/ended-span.ts'
import type { Log } from '../../shared/base/log.ts'
import type { Metrics } from '../../shared/base/metrics.ts'
import type { LiveLimit } from '../../shared/http/live-limit.ts'
import type { PageFiles } from '../../shared/http/page-files.ts'
import type { TimeSourceAliases } from '../../shared/query/time-source.ts'
import type { AuditLog } from '../audit/audit-log.ts'
import type { OwnTokens } from '../auth/own-tokens.ts'
import type { Quotas } from '../auth/quotas.ts'
import type { Revocations } from '../auth/revocations.ts'
import type { Sessions } from '../auth/sessions.ts'
import type { Tickets } from '../auth/tickets.ts'
import type { TokenStore } from '../auth/token-store.ts'
import type { DeviceProxy } from '../device/device-proxy.ts'
import type { ExportChanges } from '../export/export-changes.ts'
import type { ExportParts } from '../export/export-parts.ts'
import type { WholeExport } from '../export/export-record.ts'
import type { CallLimits } from '../fleet/call-limits.ts'
import type { FleetEvents } from '../fleet/events/fleet-events.ts'
import type { SharedAnswers } from '../fleet/shared-answers.ts'
import type { FleetView } from '../fleet/visible-fleet.ts'
import type { DownloadParts } from '../serve/serve-download.ts'

/** What the handlers work with; parts.ts makes it once. */
export interface GatewayParts {
  /** What the caller may see of the fleet. */
  readonly fleet: FleetView
  /** Of the whole fleet: whoever opens it says whose events its caller may hear. */
  readonly events: FleetEvents
  /** Clients that follow events. */
  readonly live: LiveLimit
  readonly proxy: DeviceProxy
  readonly callLimits: CallLimits
  readonly downloads: DownloadParts
  readonly exports: ExportHandling
  readonly vouchers: Vouchers
  readonly quotas: Quotas
  readonly audit: Pick<AuditLog, 'record' | 'recordRefusal' | 'folder'>
  readonly tokens: TokenHandling
  readonly tickets: Tickets
  readonly page: PageFiles
  readonly metrics: Metrics
  /** Where spans of requests go; undefined: nowhere. */
  readonly spans: SpanSink | undefined
  readonly log: Log
  readonly limits: GatewayLimits
  /** Aborts at the start of a shutdown, with the error draining as its reason. */
  readonly draining: AbortSignal
  /** Whether passwords cross the network readable on their way here. */
  readonly isInsecure: boolean
  /** Networks of proxies whose word about their clients' addresses is believed. */
  readonly trustedProxies: readonly string[]
  /** As in HttpAppOptions. */
  readonly hstsMaxAgeS: number
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

/** What the handlers of tokens work with. */
export interface TokenHandling {
  readonly own: OwnTokens
  readonly store: TokenStore
  readonly revocations: Revocations
  readonly sessions: Sessions
}

export interface GatewayLimits {
  readonly waitS: number
  readonly waitMaxS: number
  readonly devicesMax: number
  readonly streamsPerDevice: number
  readonly probeTimeoutMs: number
  readonly controlTimeoutMs: number
  /** Whether the paths below /api/v1/system/ that end answer without credentials. */
  readonly anonymousSystem: boolean
  /** Whether /metrics answers without credentials. */
  readonly anonymousMetrics: boolean
  readonly listEntriesMax: number
  /** IANA name, for local times without TSZone. */
  readonly timeZone: string
  readonly tsModeAliases: TimeSourceAliases
}
