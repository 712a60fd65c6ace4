import type Koa from 'koa'
import { clockNs } from '../native/addon.ts'
import type { FairLimit } from '../src/shared/base/fair-limit.ts'
import type { Log } from '../src/shared/base/log.ts'
import type { Metrics } from '../src/shared/base/metrics.ts'
import type { RequestState } from '../src/shared/http/http-app.ts'
import type { LiveLimit } from '../src/shared/http/live-limit.ts'
import type { RunningUploads } from '../src/shared/http/running-uploads.ts'
import type { SegmentProfiles } from './answers/segment-profiles.ts'
import type { ApplianceConfig } from './appliance-config.ts'
import type { FilterCompiler } from './compile/filter-compiler.ts'
import type { RegexCompiler } from './compile/regex-compiler.ts'
import type { DamageReports } from './downloads/damage-reports.ts'
import type { DownloadMetrics } from './downloads/download-metrics.ts'
import type { FlushWatch } from './downloads/flush-watch.ts'
import type { StreamLimit } from './downloads/stream-limit.ts'
import type { EventFeed } from './events/event-feed.ts'
import type { RecorderClient } from './link/recorder-client.ts'
import type { CaptureCatalogue } from './store/capture-catalogue.ts'
import type { SystemSensors } from './system-status/system-sensors.ts'

/** The parts used by the handlers; created once by appliance.ts. */
export interface ApplianceParts {
  readonly config: ApplianceConfig
  /** Serial number of the device: the configured one, or the identity of its store; "" = unknown. */
  readonly serial: string
  readonly log: Log
  readonly metrics: Metrics
  readonly catalogue: CaptureCatalogue
  readonly profiles: SegmentProfiles
  readonly compiler: FilterCompiler
  readonly regexCompiler: RegexCompiler
  readonly slots: StreamLimit
  /** Searches for addresses that may run at once. */
  readonly searches: FairLimit
  readonly recorder: RecorderClient
  readonly uploads: RunningUploads
  readonly flushes: FlushWatch
  readonly downloads: DownloadMetrics
  readonly damage: DamageReports
  readonly sensors: SystemSensors
  readonly events: EventFeed
  readonly live: LiveLimit
  /** Aborted, with a CapfleetError as reason, when the program is about to end: no new download starts. */
  readonly draining: AbortSignal
}

export type ApplianceContext = Koa.ParameterizedContext<RequestState>
export type ApplianceHandler = (ctx: ApplianceContext, parts: ApplianceParts) => Promise<void>

/** The clock for relative times and time_current: epoch nanoseconds. */
export function nowNs(): bigint {
  return clockNs()
}
