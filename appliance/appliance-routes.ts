/** The appliance's route table: paths are defined in src/shared/contract/device-api.ts, their handlers here. */
import { CapfleetError } from '../src/shared/base/error.ts'
import { isInsecure } from '../src/shared/base/setting-schemas.ts'
import { withDescription } from '../src/shared/contract/description.ts'
import { DEVICE_API } from '../src/shared/contract/device-api.ts'
import { type Endpoint, type Route, withForms } from '../src/shared/contract/endpoint.ts'
import { OPERATIONS } from '../src/shared/contract/operations-api.ts'
import { noSuchPath } from '../src/shared/http/http-app.ts'
import { refuseBody } from '../src/shared/http/request-body.ts'
import { answerActivity } from './answers/activity-report.ts'
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
import { uploadCapture } from './answers/upload-capture.ts'
import type { ApplianceContext, ApplianceHandler, ApplianceParts } from './appliance-parts.ts'
import { countDownload } from './downloads/count-download.ts'
import { legacyDownload, storedDownload } from './downloads/stored-download.ts'
import { answerEvents } from './events/system-events.ts'
import { answerTelemetry } from './events/system-telemetry.ts'
import { answerSeen } from './seen/answer-seen.ts'
import { answerPortStatistics } from './system-status/port-statistics.ts'
import { answerStatus } from './system-status/system-status.ts'

export type ApplianceRoute = Route<ApplianceParts, ApplianceContext>

/** Every endpoint of a device has a handler. */
const DEVICE_HANDLERS: Readonly<Record<keyof typeof DEVICE_API, ApplianceHandler>> = {
  startCapture,
  stopCapture,
  captureStatus: answerCaptureStatus,
  sysmasterStatus: answerSysmasterStatus,
  statsSummary: answerStatsSummary,
  deleteCapture,
  uploadCapture,
  time: answerTime,
  version: answerVersion,
  portStatistics: answerPortStatistics,
  ioStatistics: answerIoStatistics,
  systemStatus: answerStatus,
  events: answerEvents,
  telemetry: answerTelemetry,
  schedule: answerSchedule,
  single: storedDownload('single'),
  timeRange: storedDownload('timerange'),
  splitTime: storedDownload('splittime'),
  estimate: estimateDownload,
  count: countDownload,
  activity: answerActivity,
  seen: answerSeen,
  captures: listCaptures,
  sizeSplits: listSizeSplits,
  timeSplits: listTimeSplits,
  legacySingle: legacyDownload('single'),
  legacySplitTime: legacyDownload('splittime'),
  legacyTimeRange: legacyDownload('timerange'),
}

export const APPLIANCE_ROUTES: readonly ApplianceRoute[] = withDescription('capfleet appliance', [
  ...Object.entries(DEVICE_HANDLERS).flatMap(([name, handler]) =>
    deviceRoutes(DEVICE_API[name as keyof typeof DEVICE_API], handler),
  ),
  { ...OPERATIONS.alive, handler: answerAlive },
  { ...OPERATIONS.ready, handler: answerReady },
  { ...OPERATIONS.metrics, handler: answerMetrics },
])

/** A change of the old API is made by GET, as there, and by the proper method, as on a gateway. */
function deviceRoutes(endpoint: Endpoint, handler: ApplianceHandler): readonly ApplianceRoute[] {
  if (endpoint.changes === undefined || endpoint.takesFile !== undefined)
    return withForms([{ ...endpoint, handler }])
  const method = endpoint.path === DEVICE_API.deleteCapture.path ? 'DELETE' : 'POST'
  const withoutBody: ApplianceHandler = (ctx, parts) => {
    refuseBody(ctx)
    return handler(ctx, parts)
  }
  return [
    { ...endpoint, handler: withoutBody },
    { ...endpoint, method, handler: withoutBody },
  ]
}

const routesByPath = Map.groupBy(APPLIANCE_ROUTES, ({ path }) => path)

/** The route of a request; paths have no variable parts. Fails with not-found, method-not-allowed. */
export function routeOf(method: string, path: string): ApplianceRoute {
  const routes = routesByPath.get(path)
  if (routes === undefined) throw noSuchPath(path)
  const found = routes.find((route) => methodsOf(route).includes(method))
  if (found !== undefined) return found
  const methods = routes.flatMap(methodsOf)
  throw new CapfleetError('method-not-allowed', `${path} supports only ${methods.join(' and ')}`, {
    allow: methods,
  })
}

/** HEAD must have no effect. */
function methodsOf({ method, changes }: ApplianceRoute): readonly string[] {
  return method === 'GET' && changes === undefined ? ['GET', 'HEAD'] : [method]
}

async function answerAlive(ctx: ApplianceContext): Promise<void> {
  ctx.type = 'text/plain'
  ctx.body = 'alive\n'
}

async function answerReady(ctx: ApplianceContext, { config, draining }: ApplianceParts): Promise<void> {
  ctx.status = draining.aborted ? 503 : 200
  ctx.body = { ready: !draining.aborted, draining: draining.aborted, insecure: isInsecure(config.listen) }
}

async function answerMetrics(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  ctx.type = parts.metrics.contentType
  ctx.body = await parts.metrics.text()
}
