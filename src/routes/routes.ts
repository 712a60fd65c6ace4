/** THE TABLE of the gateway: what answers at which path, and who may ask. The first row that matches counts. */

import { parseLegacyQuery } from '../query/legacy-query.ts'
import { parseDownloadQuery } from '../query/parse-download-query.ts'
import { listFleetCaptures } from './capture-handlers.ts'
import { callDevice, changeDevice, downloadFromDevice, passToDevice } from './device-handlers.ts'
import { downloadCapture, downloadTimeRange } from './fleet-downloads.ts'
import { live, ready, showDevices, showMetrics, showQueue } from './operation-handlers.ts'
import type { Route } from './route.ts'
import { listFleetSplits } from './split-handlers.ts'

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
  { method: 'GET', path: '/devices/:device/api/v1/pcap/estimate', role: 'user', handler: passToDevice },
  { method: 'GET', path: '/devices/:device/pcap/del', role: 'full', handler: changeDevice },
  { method: 'GET', path: '/devices/:device/sysmaster/capture_start', role: 'full', handler: changeDevice },
  { method: 'GET', path: '/devices/:device/sysmaster/capture_stop', role: 'full', handler: changeDevice },
  { method: 'GET', path: '/devices/:device/{*path}', role: 'viewer', handler: callDevice },

  // The gateway itself.
  { method: 'GET', path: '/v1/devices', role: 'viewer', handler: showDevices },
  { method: 'GET', path: '/v1/queue', role: 'viewer', handler: showQueue },
  { method: 'GET', path: '/metrics', role: 'anyone', handler: showMetrics },
  { method: 'GET', path: '/livez', role: 'anyone', handler: live },
  { method: 'GET', path: '/readyz', role: 'anyone', handler: ready },
]
