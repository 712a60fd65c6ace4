import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askDevice } from '../../../src/routes/device-handlers.ts'
import { ROUTES } from '../../../src/routes/routes.ts'

test('only what reads and ends goes the way that may ask a device twice', () => {
  const rows = ROUTES.filter(({ handler }) => handler === askDevice)
  assert.deepEqual(
    rows.map(({ method, path, role }) => `${method} ${path} ${role}`),
    [
      'GET /devices/:device/api/v1/pcap/estimate user',
      'GET /devices/:device/api/v1/system/time_current system',
      'GET /devices/:device/api/v1/system/version system',
      'GET /devices/:device/api/v1/system/port_stats system',
      'GET /devices/:device/api/v1/system/io_stats system',
      'GET /devices/:device/api/v1/system/status system',
      'GET /devices/:device/api/v1/capture/schedule viewer',
      'GET /devices/:device/sysmaster/capture_status viewer',
      'GET /devices/:device/sysmaster/status viewer',
      'GET /devices/:device/sysmaster/stats_summary viewer',
      'GET /devices/:device/stream/list viewer',
      'GET /devices/:device/stream/ssize viewer',
      'GET /devices/:device/stream/stime viewer',
    ],
  )
})
