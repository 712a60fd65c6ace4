import { CapfleetError } from '../src/base/error.ts'
import type { Role } from '../src/base/role.ts'
import { noSuchPath } from '../src/http/http-app.ts'
import { startCapture, stopCapture } from './answers/capture-commands.ts'
import { listCaptures } from './answers/capture-list.ts'
import { answerSchedule } from './answers/capture-schedule.ts'
import { answerCaptureStatus } from './answers/capture-status.ts'
import { deleteCapture } from './answers/delete-capture.ts'
import { estimateDownload } from './answers/download-estimate.ts'
import { listSizeSplits, listTimeSplits } from './answers/split-list.ts'
import { answerStatsSummary } from './answers/stats-summary.ts'
import { answerSysmasterStatus } from './answers/sysmaster-status.ts'
import { answerIoStatistics, answerTime, answerVersion } from './answers/system-information.ts'
import type { ApplianceHandler } from './appliance-parts.ts'
import { legacyDownload, storedDownload } from './downloads/stored-download.ts'
import { answerEvents } from './events/system-events.ts'
import { answerTelemetry } from './events/system-telemetry.ts'
import { answerPortStatistics } from './system-status/port-statistics.ts'
import { answerStatus } from './system-status/system-status.ts'

export interface ApplianceRoute {
  readonly path: string
  /** Paths that change something take no HEAD: it must have no effect. */
  readonly methods: readonly ('GET' | 'HEAD')[]
  /**
   * "system" and "metrics" are open unless auth.anonymousSystem, or anonymousMetrics, is false; then a viewer's.
   * Whoever comes with the right credentials is known there all the same, and told more.
   */
  readonly role: Role | 'open' | 'system' | 'metrics'
  readonly handler: ApplianceHandler
}

const READ = ['GET', 'HEAD'] as const
const CHANGE = ['GET'] as const

/** THE TABLE, in the order of the API reference. */
export const APPLIANCE_ROUTES: readonly ApplianceRoute[] = [
  // 4.1 device operation
  { path: '/sysmaster/capture_start', methods: CHANGE, role: 'full', handler: startCapture },
  { path: '/sysmaster/capture_stop', methods: CHANGE, role: 'full', handler: stopCapture },
  { path: '/sysmaster/capture_status', methods: READ, role: 'viewer', handler: answerCaptureStatus },
  { path: '/sysmaster/status', methods: READ, role: 'viewer', handler: answerSysmasterStatus },
  // 4.2 device management
  { path: '/sysmaster/stats_summary', methods: READ, role: 'viewer', handler: answerStatsSummary },
  { path: '/pcap/del', methods: CHANGE, role: 'full', handler: deleteCapture },
  // 4.3 system
  { path: '/api/v1/system/time_current', methods: READ, role: 'system', handler: answerTime },
  { path: '/api/v1/system/version', methods: READ, role: 'system', handler: answerVersion },
  { path: '/api/v1/system/port_stats', methods: READ, role: 'system', handler: answerPortStatistics },
  { path: '/api/v1/system/io_stats', methods: READ, role: 'system', handler: answerIoStatistics },
  { path: '/api/v1/system/status', methods: READ, role: 'system', handler: answerStatus },
  // beyond the reference: what happens, as it happens; the schedule (api-decisions section 3)
  { path: '/api/v1/system/events', methods: READ, role: 'viewer', handler: answerEvents },
  { path: '/api/v1/system/telemetry', methods: READ, role: 'viewer', handler: answerTelemetry },
  { path: '/api/v1/capture/schedule', methods: READ, role: 'viewer', handler: answerSchedule },
  // 4.4 downloads
  { path: '/api/v1/pcap/single', methods: READ, role: 'user', handler: storedDownload('single') },
  { path: '/api/v1/pcap/timerange', methods: READ, role: 'user', handler: storedDownload('timerange') },
  { path: '/api/v1/pcap/splittime', methods: READ, role: 'user', handler: storedDownload('splittime') },
  { path: '/api/v1/pcap/estimate', methods: READ, role: 'user', handler: estimateDownload },
  // 4.5 legacy
  { path: '/stream/list', methods: READ, role: 'viewer', handler: listCaptures },
  { path: '/stream/ssize', methods: READ, role: 'viewer', handler: listSizeSplits },
  { path: '/stream/stime', methods: READ, role: 'viewer', handler: listTimeSplits },
  { path: '/pcap/single', methods: READ, role: 'user', handler: legacyDownload('single') },
  { path: '/pcap/splittime', methods: READ, role: 'user', handler: legacyDownload('splittime') },
  { path: '/pcap/timerange', methods: READ, role: 'user', handler: legacyDownload('timerange') },
  // operations
  { path: '/livez', methods: READ, role: 'open', handler: answerAlive },
  { path: '/metrics', methods: READ, role: 'metrics', handler: answerMetrics },
]

const routesByPath = new Map(APPLIANCE_ROUTES.map((route) => [route.path, route]))

/** The row of a request; paths have no variable parts. Fails with not-found, method-not-allowed. */
export function routeOf(method: string, path: string): ApplianceRoute {
  const route = routesByPath.get(path)
  if (route === undefined) throw noSuchPath(path)
  if (!route.methods.some((name) => name === method)) {
    throw new CapfleetError('method-not-allowed', `${path} takes ${route.methods.join(' and ')} only`, {
      allow: route.methods,
    })
  }
  return route
}

async function answerAlive(...[, ctx]: Parameters<ApplianceHandler>): Promise<void> {
  ctx.type = 'text/plain'
  ctx.body = 'alive\n'
}

async function answerMetrics(...[parts, ctx]: Parameters<ApplianceHandler>): Promise<void> {
  ctx.type = parts.metrics.contentType
  ctx.body = await parts.metrics.text()
}
