import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askDevice, askEstimate } from '../../../../src/gateway/routes/fleet/device-handlers.ts'
import { ROUTES } from '../../../../src/gateway/routes/routes.ts'

test('only what reads and ends goes the way that may ask a device twice', () => {
  const rows = ROUTES.filter(({ handler }) => handler === askDevice || handler === askEstimate)
  assert.deepEqual(
    rows.map(({ method, path, scope }) => `${method} ${path} ${scope}`),
    [
      'GET /devices/:device/api/v1/system/time_current system',
      'GET /devices/:device/api/v1/system/version system',
      'GET /devices/:device/api/v1/system/port_stats system',
      'GET /devices/:device/api/v1/system/io_stats system',
      'GET /devices/:device/api/v1/system/status system',
      'GET /devices/:device/api/v1/capture/schedule device:read',
      'GET /devices/:device/sysmaster/capture_status device:read',
      'GET /devices/:device/sysmaster/status device:read',
      'GET /devices/:device/sysmaster/stats_summary device:read',
      'GET /devices/:device/stream/list device:read',
      'GET /devices/:device/api/v1/pcap/estimate capture:download',
      'POST /devices/:device/api/v1/pcap/estimate capture:download',
      'GET /devices/:device/stream/ssize device:read',
      'GET /devices/:device/stream/stime device:read',
      'GET /devices/:device/api/v1/activity device:read',
    ],
  )
})
