/** Group "other" of the system status. Memory and sizes are bytes. */
import type { Space } from '../machine/free-space-sensor.ts'
import type { HostReadings } from '../machine/host-sensor.ts'
import { GroupBuilder, type StatusGroup } from './status-group.ts'

export interface OtherReadings {
  readonly host: HostReadings | undefined
  /** Space of the file system that holds the store. */
  readonly store: Space | undefined
  readonly serial: string
  readonly portConfig: string
  readonly version: string
}

const SECONDS_PER_HOUR = 3600

export function otherGroup({ host, store, serial, portConfig, version }: OtherReadings): StatusGroup {
  const memory = (name: string): number | undefined => host?.memoryBytes.get(name)
  const uptime = host?.uptimeSeconds
  return (
    new GroupBuilder()
      .read('UptimeHour', uptime === undefined ? undefined : uptime / SECONDS_PER_HOUR, 0)
      .read('MemFree', memory('MemFree'), 0)
      .read('MemErrorECC', host?.eccErrors, 0)
      .read('MemCached', memory('Cached'), 0)
      .read('MemMapped', memory('Mapped'), 0)
      .read('MemBuffer', memory('Buffers'), 0)
      .read('MemDirty', memory('Dirty'), 0)
      .read('PageInByte', host?.pageInBytes, 0)
      .read('FDCnt', host?.openFiles, 0)
      .read('WritebackB', memory('Writeback'), 0)
      // The capture cache is the kernel's page cache: it has no size or drops of its own.
      .read('CacheSize', undefined, 0)
      .read('StoreSize', store?.totalBytes, 0)
      .read('WritebackPct', undefined, 0)
      .read('WritebackDropTotalG', undefined, 0)
      .read('WritebackDropG', undefined, 0)
      .read('CPULoad', host?.cpuLoadPct, 0)
      .read('SerialNo', serial === '' ? undefined : serial, '')
      .set('PortConfig', portConfig)
      .set('Version', version)
      .build()
  )
}
