/** THE TABLE of the gateway: what answers at which path, and who may ask. The first row that matches counts. */

import { listFleetCaptures } from './capture-handlers.ts'
import { callDevice, changeDevice, downloadFromDevice } from './device-handlers.ts'
import { downloadCapture, downloadTimeRange } from './fleet-downloads.ts'
import { live, ready, showDevices, showMetrics, showQueue } from './operation-handlers.ts'
import type { Route } from './route.ts'

export const ROUTES: readonly Route[] = [
  // The fleet, by Device= or Capfleet-Device.
  { method: 'GET', path: '/api/v1/pcap/timerange', role: 'user', handler: downloadTimeRange },
  { method: 'GET', path: '/api/v1/pcap/single', role: 'user', handler: downloadCapture('single') },
  { method: 'GET', path: '/api/v1/pcap/splittime', role: 'user', handler: downloadCapture('splittime') },
  { method: 'GET', path: '/pcap/timerange', role: 'user', handler: downloadTimeRange },
  { method: 'GET', path: '/pcap/single', role: 'user', handler: downloadCapture('single') },
  { method: 'GET', path: '/pcap/splittime', role: 'user', handler: downloadCapture('splittime') },
  { method: 'GET', path: '/stream/list', role: 'viewer', handler: listFleetCaptures },

  // One device: its downloads take a lease, all else is passed through.
  {
    method: 'GET',
    path: '/devices/:device/api/v1/pcap/timerange',
    role: 'user',
    handler: downloadFromDevice('timerange'),
  },
  {
    method: 'GET',
    path: '/devices/:device/api/v1/pcap/single',
    role: 'user',
    handler: downloadFromDevice('single'),
  },
  {
    method: 'GET',
    path: '/devices/:device/api/v1/pcap/splittime',
    role: 'user',
    handler: downloadFromDevice('splittime'),
  },
  {
    method: 'GET',
    path: '/devices/:device/pcap/timerange',
    role: 'user',
    handler: downloadFromDevice('timerange'),
  },
  {
    method: 'GET',
    path: '/devices/:device/pcap/single',
    role: 'user',
    handler: downloadFromDevice('single'),
  },
  {
    method: 'GET',
    path: '/devices/:device/pcap/splittime',
    role: 'user',
    handler: downloadFromDevice('splittime'),
  },
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
