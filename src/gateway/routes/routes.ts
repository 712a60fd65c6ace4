/**
 * The gateway's route table: which handler answers what. The parameters and answers of each path are defined in
 * src/shared/contract/device-api.ts and gateway-api.ts. The first matching route counts.
 */

import { withDescription } from '../../shared/contract/description.ts'
import { DEVICE_API } from '../../shared/contract/device-api.ts'
import { type Endpoint, withForms } from '../../shared/contract/endpoint.ts'
import { EXPORT_API } from '../../shared/contract/export-api.ts'
import { GATEWAY_API } from '../../shared/contract/gateway-api.ts'
import { OPERATIONS } from '../../shared/contract/operations-api.ts'
import {
  askedOfAll,
  belowDevice,
  countBelowDevice,
  downloadBelowDevice,
  downloadOfFleet,
  OTHER_DEVICE_PATH,
  passedToOne,
  readablePath,
  searchBelowDevice,
} from '../../shared/contract/repeated-endpoints.ts'
import { SESSION_API } from '../../shared/contract/session-api.ts'
import { TOKEN_API } from '../../shared/contract/token-api.ts'
import { parseLegacyQuery } from '../../shared/query/download/legacy-query.ts'
import { parseDownloadQuery } from '../../shared/query/download/parse-download-query.ts'
import { listAudit } from './access/audit-handlers.ts'
import { beginSession, endSession, showSession } from './access/session-handlers.ts'
import { issueTicket } from './access/ticket-handlers.ts'
import { issueToken, listTokens, revokeToken } from './access/token-handlers.ts'
import { listUsers } from './access/user-handlers.ts'
import { countFleet, countOnDevice } from './downloads/count-handlers.ts'
import { downloadCapture, downloadFromDevice, downloadTimeRange } from './downloads/download-handlers.ts'
import { estimateFleet } from './downloads/estimate-handlers.ts'
import { cancelQueuePlace, showQueue, showQueuePlace } from './downloads/queue-handlers.ts'
import { listReceipts, showReceipt } from './downloads/receipt-handlers.ts'
import { searchDevice, searchFleet } from './downloads/seen-handlers.ts'
import { followExport } from './exports/export-events.ts'
import { sendExportFile, showManifest } from './exports/export-files.ts'
import { cancelExport, fillExport, listExports, orderExport, showExport } from './exports/export-handlers.ts'
import { listSchedules, orderSchedule, removeSchedule, showSchedule } from './exports/schedule-handlers.ts'
import { showFleetActivity } from './fleet/activity-handlers.ts'
import { listFleetCaptures } from './fleet/capture-handlers.ts'
import { askDevices, changeDevices, deleteFleetCapture } from './fleet/control-handlers.ts'
import {
  askDevice,
  askEstimate,
  callDevice,
  changeDevice,
  followDevice,
  passToChosenDevice,
} from './fleet/device-handlers.ts'
import { showDevice, showDevices } from './fleet/device-reports.ts'
import { followFleet } from './fleet/event-handlers.ts'
import { listFleetSplits } from './fleet/split-handlers.ts'
import { uploadToChosenDevice, uploadToDevice } from './fleet/upload-handlers.ts'
import type { GatewayRoute } from './gateway-parts.ts'
import { live, ready, showMetrics } from './operation-handlers.ts'
import { leadToDocs, showAsset, showDissector, showDocs, showPage } from './page-handlers.ts'

/** What a device reports about itself. */
const SYSTEM_READS: readonly Endpoint[] = [
  DEVICE_API.time,
  DEVICE_API.version,
  DEVICE_API.portStatistics,
  DEVICE_API.ioStatistics,
  DEVICE_API.systemStatus,
  DEVICE_API.schedule,
  DEVICE_API.captureStatus,
  DEVICE_API.sysmasterStatus,
  DEVICE_API.statsSummary,
]

/** What a device reports for as long as it is listened to. */
const LIVE_READS: readonly Endpoint[] = [DEVICE_API.events, DEVICE_API.telemetry]

/** Everything that counts packets, filtered out or not: the parts of a capture, and of a time range. */
const COUNTING_READS: readonly Endpoint[] = [
  DEVICE_API.sizeSplits,
  DEVICE_API.timeSplits,
  DEVICE_API.activity,
]

/** A change: by GET, as in the API of the devices, and by the proper method. */
function bothWays(
  method: 'POST' | 'DELETE',
  endpoint: Endpoint,
  handler: GatewayRoute['handler'],
): readonly GatewayRoute[] {
  return [
    { ...endpoint, handler },
    { ...endpoint, method, handler },
  ]
}

/** The table with additional read-only device paths (control.readablePaths), and with its description. */
export function routesWith(readablePaths: readonly string[]): readonly GatewayRoute[] {
  const rows = new Set(ROUTES.map(({ path }) => path))
  // An existing route stays unchanged: no setting can turn a change into something that viewers may send.
  const added = readablePaths
    .map((path) => ({ ...readablePath(path), handler: followDevice }))
    .filter(({ path }) => !rows.has(path))
  return withDescription('capfleet gateway', [...added, ...ROUTES])
}

export const ROUTES: readonly GatewayRoute[] = withForms<GatewayRoute>([
  // The fleet, selected by Device= or Capfleet-Device.
  {
    ...downloadOfFleet(
      DEVICE_API.timeRange,
      'The packets of a time range from all selected devices, merged in the order of time.',
    ),
    handler: downloadTimeRange(parseDownloadQuery),
  },
  {
    ...downloadOfFleet(DEVICE_API.single, 'A whole capture, from the one device that holds it.'),
    handler: downloadCapture('single', parseDownloadQuery),
  },
  {
    ...downloadOfFleet(
      DEVICE_API.splitTime,
      'The packets of a capture between two times, from the one device that holds it.',
    ),
    handler: downloadCapture('splittime', parseDownloadQuery),
  },
  {
    ...downloadOfFleet(
      DEVICE_API.legacyTimeRange,
      'The packets of a time range from all selected devices, by the old path. TSMode is the unit of its times.',
    ),
    handler: downloadTimeRange(parseLegacyQuery),
  },
  {
    ...downloadOfFleet(
      DEVICE_API.legacySingle,
      'A whole capture, from the one device that holds it, by the old path.',
    ),
    handler: downloadCapture('single', parseLegacyQuery),
  },
  {
    ...downloadOfFleet(
      DEVICE_API.legacySplitTime,
      'The packets of a capture between two times, from the one device that holds it, by the old path.',
    ),
    handler: downloadCapture('splittime', parseLegacyQuery),
  },
  { ...GATEWAY_API.captures, handler: listFleetCaptures },
  { ...GATEWAY_API.sizeSplits, handler: listFleetSplits },
  { ...GATEWAY_API.timeSplits, handler: listFleetSplits },
  ...LIVE_READS.map((endpoint) => ({ ...passedToOne(endpoint), handler: passToChosenDevice })),
  ...SYSTEM_READS.map((endpoint) => ({ ...askedOfAll(endpoint), handler: askDevices })),
  ...bothWays('POST', askedOfAll(DEVICE_API.startCapture), changeDevices),
  ...bothWays('POST', askedOfAll(DEVICE_API.stopCapture), changeDevices),
  ...bothWays('DELETE', askedOfAll(DEVICE_API.deleteCapture), deleteFleetCapture),
  { ...passedToOne(DEVICE_API.uploadCapture), handler: uploadToChosenDevice },

  // One device: its downloads take a lease, everything else is forwarded.
  {
    ...downloadBelowDevice(DEVICE_API.timeRange),
    handler: downloadFromDevice('timerange', parseDownloadQuery),
  },
  { ...downloadBelowDevice(DEVICE_API.single), handler: downloadFromDevice('single', parseDownloadQuery) },
  {
    ...downloadBelowDevice(DEVICE_API.splitTime),
    handler: downloadFromDevice('splittime', parseDownloadQuery),
  },
  {
    ...downloadBelowDevice(DEVICE_API.legacyTimeRange),
    handler: downloadFromDevice('timerange', parseLegacyQuery),
  },
  {
    ...downloadBelowDevice(DEVICE_API.legacySingle),
    handler: downloadFromDevice('single', parseLegacyQuery),
  },
  {
    ...downloadBelowDevice(DEVICE_API.legacySplitTime),
    handler: downloadFromDevice('splittime', parseLegacyQuery),
  },
  // Calls that only read and end take a shorter path than those that change something, continue, or are unknown.
  ...[...SYSTEM_READS, DEVICE_API.captures].map((endpoint) => ({
    ...belowDevice(endpoint),
    handler: askDevice,
  })),
  { ...belowDevice(DEVICE_API.estimate), handler: askEstimate },
  { ...countBelowDevice(DEVICE_API.count), handler: countOnDevice },
  { ...searchBelowDevice(DEVICE_API.seen), handler: searchDevice },
  ...COUNTING_READS.map((endpoint) => ({ ...belowDevice(endpoint), handler: askDevice })),
  ...bothWays('DELETE', belowDevice(DEVICE_API.deleteCapture), changeDevice),
  ...bothWays('POST', belowDevice(DEVICE_API.startCapture), changeDevice),
  ...bothWays('POST', belowDevice(DEVICE_API.stopCapture), changeDevice),
  { ...belowDevice(DEVICE_API.uploadCapture), handler: uploadToDevice },
  ...LIVE_READS.map((endpoint) => ({ ...belowDevice(endpoint), handler: followDevice })),
  // A call without a route might change the device; control.readablePaths adds routes for calls that only read.
  { ...OTHER_DEVICE_PATH, handler: callDevice },

  // The gateway itself.
  { ...GATEWAY_API.devices, handler: showDevices },
  { ...GATEWAY_API.device, handler: showDevice },
  { ...GATEWAY_API.events, handler: followFleet },
  { ...GATEWAY_API.queue, handler: showQueue },
  { ...GATEWAY_API.queuePlace, handler: showQueuePlace },
  { ...GATEWAY_API.cancel, handler: cancelQueuePlace },
  { ...GATEWAY_API.receipts, handler: listReceipts },
  { ...GATEWAY_API.receipt, handler: showReceipt },
  { ...GATEWAY_API.estimate, handler: estimateFleet },
  { ...GATEWAY_API.count, handler: countFleet },
  { ...GATEWAY_API.activity, handler: showFleetActivity },
  { ...GATEWAY_API.seen, handler: searchFleet },
  { ...GATEWAY_API.users, handler: listUsers },
  { ...GATEWAY_API.audit, handler: listAudit() },

  // Exports.
  { ...EXPORT_API.order, handler: orderExport },
  { ...EXPORT_API.list, handler: listExports },
  { ...EXPORT_API.show, handler: showExport },
  { ...EXPORT_API.cancel, handler: cancelExport },
  { ...EXPORT_API.fill, handler: fillExport },
  { ...EXPORT_API.events, handler: followExport },
  { ...EXPORT_API.file, handler: sendExportFile },
  { ...EXPORT_API.manifest, handler: showManifest },
  { ...EXPORT_API.schedule, handler: orderSchedule },
  { ...EXPORT_API.schedules, handler: listSchedules },
  { ...EXPORT_API.showSchedule, handler: showSchedule },
  { ...EXPORT_API.unschedule, handler: removeSchedule },

  // Credentials.
  { ...TOKEN_API.issue, handler: issueToken },
  { ...TOKEN_API.list, handler: listTokens },
  { ...TOKEN_API.revoke, handler: revokeToken },
  { ...TOKEN_API.ticket, handler: issueTicket },

  // The page and the documentation.
  { ...SESSION_API.page, handler: showPage },
  { ...SESSION_API.asset, handler: showAsset },
  { ...SESSION_API.dissector, handler: showDissector },
  { ...SESSION_API.docs, handler: leadToDocs },
  { ...SESSION_API.docsFile, handler: showDocs },
  { ...SESSION_API.begin, handler: beginSession },
  { ...SESSION_API.show, handler: showSession },
  { ...SESSION_API.end, handler: endSession },

  // Metrics and health checks of this gateway.
  { ...OPERATIONS.metrics, handler: showMetrics },
  { ...OPERATIONS.alive, handler: live },
  { ...OPERATIONS.ready, handler: ready },
])
