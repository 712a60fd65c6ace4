import assert from 'node:assert/strict'
import { test } from 'node:test'
import { registerMachineMetrics } from '../../../appliance/answers/machine-metrics.ts'
import { Metrics } from '../../../src/shared/base/metrics.ts'

/** The lines of /metrics about disks and clocks. */
async function linesOf(metrics: Metrics): Promise<readonly string[]> {
  const text = await metrics.text()
  return [...text.matchAll(/^capfleet_((?:disk|clock)_.*)$/gm)].map(([, line = '']) => line)
}

test('disks and clocks are reported as read from their sensors', async () => {
  const metrics = new Metrics()
  const synced = { isSynced: true, master: '', deviationNs: undefined, syncedSeconds: 1 }
  registerMachineMetrics(metrics, {
    spaces: {
      value: new Map([
        ['System', { freeBytes: 3n, totalBytes: 4n, freeFiles: 0n, totalFiles: 0n }],
        ['Store0', { freeBytes: 7n, totalBytes: 9n, freeFiles: 5n, totalFiles: 6n }],
      ]),
    },
    clocks: {
      value: {
        ntp: { ...synced, offsetNs: -1_500_000 },
        grandmaster: { ...synced, isSynced: false, offsetNs: undefined },
      },
    },
  })
  assert.deepEqual(await linesOf(metrics), [
    'disk_free_bytes{mount="System"} 3',
    'disk_free_bytes{mount="Store0"} 7',
    'disk_size_bytes{mount="System"} 4',
    'disk_size_bytes{mount="Store0"} 9',
    'disk_free_files{mount="Store0"} 5',
    'clock_synced{source="ntp"} 1',
    'clock_synced{source="ptp"} 0',
    'clock_master_offset_seconds{source="ntp"} -0.0015',
  ])
})

test('values that no sensor reports have no series', async () => {
  const metrics = new Metrics()
  registerMachineMetrics(metrics, { spaces: { value: undefined }, clocks: { value: undefined } })
  assert.deepEqual(await linesOf(metrics), [])
})
