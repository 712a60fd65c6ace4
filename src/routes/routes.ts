/** THE TABLE of the gateway: what answers at which path, and who may ask. The first row that matches counts. */

import { parseLegacyQuery } from '../query/legacy-query.ts'
import { parseDownloadQuery } from '../query/parse-download-query.ts'
import { listFleetCaptures } from './capture-handlers.ts'
import { askDevices, changeDevices, deleteFleetCapture } from './control-handlers.ts'
import {
  askDevice,
  callDevice,
  changeDevice,
  downloadFromDevice,
  followDevice,
  passToChosenDevice,
} from './device-handlers.ts'
import { showDevice, showDevices } from './device-reports.ts'
import { estimateFleet } from './estimate-handlers.ts'
import { downloadCapture, downloadTimeRange } from './fleet-downloads.ts'
import { live, ready, showMetrics } from './operation-handlers.ts'
import { showQueue, showQueuePlace } from './queue-handlers.ts'
import { showRequest } from './request-handlers.ts'
import type { Route, RouteHandler } from './route.ts'
import { listFleetSplits } from './split-handlers.ts'

/** What a device tells of itself. */
const SYSTEM_READS = [
  '/api/v1/system/time_current',
  '/api/v1/system/version',
  '/api/v1/system/port_stats',
  '/api/v1/system/io_stats',
  '/api/v1/system/status',
  '/api/v1/capture/schedule',
  '/sysmaster/capture_status',
  '/sysmaster/status',
  '/sysmaster/stats_summary',
]

/** Those of the API's section 4.3 need no credentials where the gateway is set up so. */
function roleOf(path: string): Route['role'] {
  return path.startsWith('/api/v1/system/') ? 'system' : 'viewer'
}

/** What a device tells for as long as it is listened to. */
const LIVE_READS = ['/api/v1/system/events', '/api/v1/system/telemetry']

const STREAM_READS = ['/stream/list', '/stream/ssize', '/stream/stime']

/** A change: by GET, as the API of the devices has it, and by the method that says so. */
function bothWays(method: 'POST' | 'DELETE', path: string, handler: RouteHandler): readonly Route[] {
  return [
    { method: 'GET', path, role: 'full', handler },
    { method, path, role: 'full', handler },
  ]
}

function followed(path: string): Route {
  return { method: 'GET', path: `/devices/:device${path}`, role: 'viewer', handler: followDevice }
}

/** The table with rows for further paths of devices that only read (control.readablePaths). */
export function routesWith(readablePaths: readonly string[]): readonly Route[] {
  const rows = new Set(ROUTES.map(({ path }) => path))
  // A row of the table stays as it is: no setting can make a change out of it that viewers may send.
  const added = readablePaths.map(followed).filter(({ path }) => !rows.has(path))
  return [...added, ...ROUTES]
}

export const ROUTES: readonly Route[] = [
  // The fleet, by Device= or Capfleet-Device.
  {
    method: 'GET',
    path: '/api/v1/pcap/timerange',
    role: 'user',
    handler: downloadTimeRange(parseDownloadQuery),
  },
  {
    method: 'GET',
    path: '/api/v1/pcap/single',
    role: 'user',
    handler: downloadCapture('single', parseDownloadQuery),
  },
  {
    method: 'GET',
    path: '/api/v1/pcap/splittime',
    role: 'user',
    handler: downloadCapture('splittime', parseDownloadQuery),
  },
  { method: 'GET', path: '/pcap/timerange', role: 'user', handler: downloadTimeRange(parseLegacyQuery) },
  { method: 'GET', path: '/pcap/single', role: 'user', handler: downloadCapture('single', parseLegacyQuery) },
  {
    method: 'GET',
    path: '/pcap/splittime',
    role: 'user',
    handler: downloadCapture('splittime', parseLegacyQuery),
  },
  { method: 'GET', path: '/stream/list', role: 'viewer', handler: listFleetCaptures },
  { method: 'GET', path: '/stream/ssize', role: 'viewer', handler: listFleetSplits },
  { method: 'GET', path: '/stream/stime', role: 'viewer', handler: listFleetSplits },
  ...LIVE_READS.map((path): Route => ({ method: 'GET', path, role: 'viewer', handler: passToChosenDevice })),
  ...SYSTEM_READS.map((path): Route => ({ method: 'GET', path, role: roleOf(path), handler: askDevices })),
  ...bothWays('POST', '/sysmaster/capture_start', changeDevices),
  ...bothWays('POST', '/sysmaster/capture_stop', changeDevices),
  ...bothWays('DELETE', '/pcap/del', deleteFleetCapture),

  // One device: its downloads take a lease, all else is passed through.
  {
    method: 'GET',
    path: '/devices/:device/api/v1/pcap/timerange',
    role: 'user',
    handler: downloadFromDevice('timerange', parseDownloadQuery),
  },
  {
    method: 'GET',
    path: '/devices/:device/api/v1/pcap/single',
    role: 'user',
    handler: downloadFromDevice('single', parseDownloadQuery),
  },
  {
    method: 'GET',
    path: '/devices/:device/api/v1/pcap/splittime',
    role: 'user',
    handler: downloadFromDevice('splittime', parseDownloadQuery),
  },
  {
    method: 'GET',
    path: '/devices/:device/pcap/timerange',
    role: 'user',
    handler: downloadFromDevice('timerange', parseLegacyQuery),
  },
  {
    method: 'GET',
    path: '/devices/:device/pcap/single',
    role: 'user',
    handler: downloadFromDevice('single', parseLegacyQuery),
  },
  {
    method: 'GET',
    path: '/devices/:device/pcap/splittime',
    role: 'user',
    handler: downloadFromDevice('splittime', parseLegacyQuery),
  },
  // What only reads and ends goes a shorter way than what changes something, goes on, or is not known.
  { method: 'GET', path: '/devices/:device/api/v1/pcap/estimate', role: 'user', handler: askDevice },
  ...[...SYSTEM_READS, ...STREAM_READS].map(
    (path): Route => ({
      method: 'GET',
      path: `/devices/:device${path}`,
      role: roleOf(path),
      handler: askDevice,
    }),
  ),
  ...bothWays('DELETE', '/devices/:device/pcap/del', changeDevice),
  ...bothWays('POST', '/devices/:device/sysmaster/capture_start', changeDevice),
  ...bothWays('POST', '/devices/:device/sysmaster/capture_stop', changeDevice),
  ...LIVE_READS.map((path): Route => followed(path)),
  // What is in no row might change the device; control.readablePaths adds rows for what only reads.
  { method: 'GET', path: '/devices/:device/{*path}', role: 'full', handler: callDevice },

  // The gateway itself.
  { method: 'GET', path: '/v1/devices', role: 'viewer', handler: showDevices },
  { method: 'GET', path: '/v1/devices/:device', role: 'viewer', handler: showDevice },
  { method: 'GET', path: '/v1/queue', role: 'viewer', handler: showQueue },
  { method: 'GET', path: '/v1/queue/:id', role: 'viewer', handler: showQueuePlace },
  { method: 'GET', path: '/v1/requests/:id', role: 'viewer', handler: showRequest },
  { method: 'GET', path: '/v1/estimate', role: 'user', handler: estimateFleet },
  { method: 'GET', path: '/metrics', role: 'metrics', handler: showMetrics },
  { method: 'GET', path: '/livez', role: 'anyone', handler: live },
  { method: 'GET', path: '/readyz', role: 'anyone', handler: ready },
]
