/** Metrics from the sensors of the machine, as of the last seconds. A value that no sensor provides has no series. */
import type { Metrics } from '../../src/shared/base/metrics.ts'
import type { ClockReadings } from '../machine/clock-sync-sensor.ts'
import type { MountId, Space } from '../machine/free-space-sensor.ts'

export interface MachineReadings {
  readonly spaces: { readonly value: ReadonlyMap<MountId, Space> | undefined }
  readonly clocks: { readonly value: ClockReadings | undefined }
}

export function registerMachineMetrics(metrics: Metrics, { spaces, clocks }: MachineReadings): void {
  metrics.figures('disk_free_bytes', 'Free space, by mount; Store0 holds the store', ['mount'], (set) => {
    for (const [mount, { freeBytes }] of spaces.value ?? []) set(Number(freeBytes), { mount })
  })
  metrics.figures('disk_size_bytes', 'Size of the file system, by mount', ['mount'], (set) => {
    for (const [mount, { totalBytes }] of spaces.value ?? []) set(Number(totalBytes), { mount })
  })
  metrics.figures(
    'disk_free_files',
    'Free inodes, by mount; absent if the file system does not limit them',
    ['mount'],
    (set) => {
      for (const [mount, { freeFiles, totalFiles }] of spaces.value ?? [])
        if (totalFiles > 0n) set(Number(freeFiles), { mount })
    },
  )
  metrics.figures('clock_synced', 'Whether the clock is synchronized by ntp or ptp', ['source'], (set) => {
    for (const [source, { isSynced }] of sourcesOf(clocks.value)) set(Number(isSynced), { source })
  })
  metrics.figures(
    'clock_master_offset_seconds',
    'How far the clock is ahead of its master, if its daemon reports it',
    ['source'],
    (set) => {
      for (const [source, { offsetNs }] of sourcesOf(clocks.value))
        if (offsetNs !== undefined) set(offsetNs / NANOS_PER_SECOND, { source })
    },
  )
}

const NANOS_PER_SECOND = 1e9

function sourcesOf(clocks: ClockReadings | undefined) {
  const { ntp, grandmaster } = clocks ?? {}
  return [
    ...(ntp === undefined ? [] : [['ntp', ntp] as const]),
    ...(grandmaster === undefined ? [] : [['ptp', grandmaster] as const]),
  ]
}
