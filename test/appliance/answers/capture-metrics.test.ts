// What the recorder reports, as shown by Prometheus metrics and port_stats.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { registerCaptureMetrics } from '../../../appliance/answers/capture-metrics.ts'
import type { CaptureReport, PortReport } from '../../../appliance/link/capture-report.ts'
import { Metrics } from '../../../src/shared/base/metrics.ts'

function portFigures(port: number, first: bigint): PortReport {
  return {
    port,
    packets: 1n,
    bytes: 2n,
    hasHardwareTimestamps: false,
    seenPackets: first,
    seenBytes: first + 1n,
    storedPackets: first + 2n,
    storedBytes: first + 3n,
    filteredPackets: first + 4n,
    ringDrops: first + 5n,
    diskDrops: first + 6n,
    pendingPackets: first + 7n,
    fcsErrors: first + 8n,
    lastPacketNs: 1_500_000_000n,
    sizeClasses: Array.from({ length: 12 }, (_, index) => BigInt(index)),
    isUp: port === 0,
  }
}

function reportOf(ports: readonly PortReport[]): CaptureReport {
  const counts = { flushedNs: 2_500_000_000n, pendingBytes: 77n, diskErrors: 3n, ports }
  const clockHold = 'clock-stepped'
  return {
    state: 'running',
    ports: ports.map(({ port }) => port),
    counts,
    clockHold,
  } as unknown as CaptureReport
}

describe('capture metrics', () => {
  const capture: { value: CaptureReport | undefined } = { value: undefined }
  const stored = { value: { captures: 2, damaged: 1, packets: 30n, bytes: 4_000n, oldestNs: 7_000_000_000n } }
  const metrics = new Metrics()
  registerCaptureMetrics(metrics, { capture, stored })

  /** Series of capture, store and recorder, with their values. */
  const series = async (): Promise<Record<string, number>> => {
    const lines = (await metrics.text()).matchAll(
      /^capfleet_((?:capture|store|recorder|retention)_\S+) (\S+)$/gm,
    )
    return Object.fromEntries([...lines].map(([, name = '', value]) => [name, Number(value)]))
  }
  const STORE = {
    store_captures: 2,
    store_damaged_captures: 1,
    store_packets: 30,
    store_bytes: 4_000,
    store_oldest_packet_timestamp_seconds: 7,
  }

  test('without recorder say so, and have no figure of a capture', async () => {
    capture.value = undefined
    assert.deepEqual(await series(), { recorder_up: 0, ...STORE })
  })

  test('show every figure of every port, and causes of drops apart', async () => {
    capture.value = reportOf([portFigures(0, 100n), portFigures(3, 200n)])
    const { capture_flushed_lag_seconds: lag, ...found } = await series()
    const ofPort = (port: number, first: number) => ({
      [`capture_seen_packets_total{port="cap${port}"}`]: first,
      [`capture_seen_bytes_total{port="cap${port}"}`]: first + 1,
      [`capture_stored_packets_total{port="cap${port}"}`]: first + 2,
      [`capture_stored_bytes_total{port="cap${port}"}`]: first + 3,
      [`capture_filtered_packets_total{port="cap${port}"}`]: first + 4,
      [`capture_dropped_packets_total{port="cap${port}",cause="ring"}`]: first + 5,
      [`capture_dropped_packets_total{port="cap${port}",cause="disk"}`]: first + 6,
      [`capture_pending_packets{port="cap${port}"}`]: first + 7,
      [`capture_fcs_errors_total{port="cap${port}"}`]: first + 8,
      [`capture_last_packet_timestamp_seconds{port="cap${port}"}`]: 1.5,
      [`capture_port_up{port="cap${port}"}`]: port === 0 ? 1 : 0,
    })
    assert.deepEqual(found, {
      recorder_up: 1,
      recorder_clock_trusted: 0,
      capture_active: 1,
      capture_failing: 0,
      capture_flushed_timestamp_seconds: 2.5,
      capture_pending_bytes: 77,
      capture_disk_errors_total: 3,
      ...STORE,
      ...ofPort(0, 100),
      ...ofPort(3, 200),
    })
    assert.ok(lag !== undefined && Math.abs(lag - (Date.now() / 1000 - 2.5)) < 5)
  })

  test('distinguish a capture that cannot run from no capture', async () => {
    for (const [state, figures] of [
      ['error', [0, 1]],
      ['idle', [0, 0]],
      ['starting', [1, 0]],
    ] as const) {
      capture.value = { ...reportOf([]), state }
      const found = await series()
      assert.deepEqual([found.capture_active, found.capture_failing], figures, state)
    }
  })

  test('show what retention keeps free, and whether it fails, where there is retention', async () => {
    for (const [problem, failing] of [
      ['', 0],
      ['the disk refuses', 1],
    ] as const) {
      capture.value = { ...reportOf([]), retention: { minFreeBytes: 9n, problem } }
      const found = await series()
      assert.deepEqual([found.retention_min_free_bytes, found.retention_failing], [9, failing])
    }
    capture.value = reportOf([])
    assert.equal((await series()).retention_failing, undefined)
  })

  test('of a port or a recorder that is gone are gone too; a new capture begins at 0', async () => {
    capture.value = reportOf([portFigures(3, 5n)])
    const found = await series()
    assert.equal(found['capture_seen_packets_total{port="cap3"}'], 5)
    assert.equal(found['capture_seen_packets_total{port="cap0"}'], undefined)
    capture.value = undefined
    assert.deepEqual(await series(), { recorder_up: 0, ...STORE })
  })
})
