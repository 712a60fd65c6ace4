/**
 * THE TABLE of the gateway: which handler answers what. What each path takes and answers stands in
 * src/shared/contract/device-api.ts and gateway-api.ts. The first row that matches counts.
 */

import { withDescription } from '../../shared/contract/description.ts'
import { DEVICE_API, OPERATIONS } from '../../shared/contract/device-api.ts'
import type { Endpoint } from '../../shared/contract/endpoint.ts'
import { EXPORT_API } from '../../shared/contract/export-api.ts'
import {
  askedOfAll,
  belowDevice,
  downloadBelowDevice,
  downloadOfFleet,
  GATEWAY_API,
  OTHER_DEVICE_PATH,
  passedToOne,
  readablePath,
} from '../../shared/contract/gateway-api.ts'
import { SESSION_API } from '../../shared/contract/session-api.ts'
import { TOKEN_API } from '../../shared/contract/token-api.ts'
import { parseLegacyQuery } from '../../shared/query/legacy-query.ts'
import { parseDownloadQuery } from '../../shared/query/parse-download-query.ts'
import { listAudit } from './access/audit-handlers.ts'
import { beginSession, endSession, showSession } from './access/session-handlers.ts'
import { issueTicket } from './access/ticket-handlers.ts'
import { issueToken, listTokens, revokeToken } from './access/token-handlers.ts'
import { listUsers } from './access/user-handlers.ts'
import { downloadCapture, downloadFromDevice, downloadTimeRange } from './downloads/download-handlers.ts'
import { estimateFleet } from './downloads/estimate-handlers.ts'
import { showQueue, showQueuePlace } from './downloads/queue-handlers.ts'
import { listReceipts, showReceipt } from './downloads/receipt-handlers.ts'
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
import type { GatewayRoute } from './gateway-parts.ts'
import { live, ready, showMetrics } from './operation-handlers.ts'
import { showAsset, showPage } from './page-handlers.ts'

/** What a device tells of itself. */
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

/** What a device tells for as long as it is listened to. */
const LIVE_READS: readonly Endpoint[] = [DEVICE_API.events, DEVICE_API.telemetry]

/** What counts packets, whatever they are: the parts of a capture, and of a time range. */
const COUNTING_READS: readonly Endpoint[] = [
  DEVICE_API.sizeSplits,
  DEVICE_API.timeSplits,
  DEVICE_API.activity,
]

/** A change: by GET, as the API of the devices has it, and by the method that says so. */
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

/** The table with rows for further paths of devices that only read (control.readablePaths), and with its description. */
export function routesWith(readablePaths: readonly string[]): readonly GatewayRoute[] {
  const rows = new Set(ROUTES.map(({ path }) => path))
  // A row of the table stays as it is: no setting can make a change out of it that viewers may send.
  const added = readablePaths
    .map((path) => ({ ...readablePath(path), handler: followDevice }))
    .filter(({ path }) => !rows.has(path))
  return withDescription('capfleet gateway', [...added, ...ROUTES])
}

export const ROUTES: readonly GatewayRoute[] = [
  // The fleet, by Device= or Capfleet-Device.
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

  // One device: its downloads take a lease, all else is passed through.
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
  // What only reads and ends goes a shorter way than what changes something, goes on, or is not known.
  ...[...SYSTEM_READS, DEVICE_API.captures].map((endpoint) => ({
    ...belowDevice(endpoint),
    handler: askDevice,
  })),
  { ...belowDevice(DEVICE_API.estimate), handler: askEstimate },
  ...COUNTING_READS.map((endpoint) => ({ ...belowDevice(endpoint), handler: askDevice })),
  ...bothWays('DELETE', belowDevice(DEVICE_API.deleteCapture), changeDevice),
  ...bothWays('POST', belowDevice(DEVICE_API.startCapture), changeDevice),
  ...bothWays('POST', belowDevice(DEVICE_API.stopCapture), changeDevice),
  ...LIVE_READS.map((endpoint) => ({ ...belowDevice(endpoint), handler: followDevice })),
  // What is in no row might change the device; control.readablePaths adds rows for what only reads.
  { ...OTHER_DEVICE_PATH, handler: callDevice },

  // The gateway itself.
  { ...GATEWAY_API.devices, handler: showDevices },
  { ...GATEWAY_API.device, handler: showDevice },
  { ...GATEWAY_API.events, handler: followFleet },
  { ...GATEWAY_API.queue, handler: showQueue },
  { ...GATEWAY_API.queuePlace, handler: showQueuePlace },
  { ...GATEWAY_API.receipts, handler: listReceipts },
  { ...GATEWAY_API.receipt, handler: showReceipt },
  { ...GATEWAY_API.estimate, handler: estimateFleet },
  { ...GATEWAY_API.activity, handler: showFleetActivity },
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

  // The page.
  { ...SESSION_API.page, handler: showPage },
  { ...SESSION_API.asset, handler: showAsset },
  { ...SESSION_API.begin, handler: beginSession },
  { ...SESSION_API.show, handler: showSession },
  { ...SESSION_API.end, handler: endSession },

  // What whoever runs the gateway looks at.
  { ...OPERATIONS.metrics, handler: showMetrics },
  { ...OPERATIONS.alive, handler: live },
  { ...OPERATIONS.ready, handler: ready },
]
