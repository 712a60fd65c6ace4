/** Groups "disk" and "io" of the system status. */
import type { DiskIo } from '../machine/disk-io-sensor.ts'
import { DISK_IDS, type DiskId } from '../machine/disk-names.ts'
import type { DiskIdentity } from '../machine/disk-presence.ts'
import { MOUNT_IDS, type MountId, type Space } from '../machine/free-space-sensor.ts'
import type { DiskHealth } from '../machine/smart-sensor.ts'
import { GroupBuilder, type StatusGroup } from './status-group.ts'

export interface DiskReadings {
  readonly spaces: ReadonlyMap<MountId, Space> | undefined
  readonly disks: ReadonlyMap<DiskId, DiskIdentity> | undefined
  /** The health of each disk, by its name. */
  readonly health: ReadonlyMap<string, DiskHealth> | undefined
}

const BYTES_PER_GB = 1e9

export function diskGroup({ spaces, disks, health }: DiskReadings): StatusGroup {
  const group = new GroupBuilder()
  for (const id of MOUNT_IDS) {
    const space = spaces?.get(id)
    group.read(`FreeGB_${id}`, space && Number(space.freeBytes) / BYTES_PER_GB, 0)
  }
  for (const id of DISK_IDS) {
    const disk = disks?.get(id)
    const state = disk && health?.get(disk.name)
    group.read(`DiskPresent_${id}`, disk?.isPresent, false)
    group.read(
      `DiskTemperature_${id}`,
      state?.celsius === undefined ? undefined : Math.round(state.celsius),
      0,
    )
    group.read(`DiskSMART_${id}`, state && smartProblems(state), 0)
  }
  return group.build()
}

/** 0 = healthy: the number of bad sectors and similar, plus 1 for its own verdict "failing". */
export function smartProblems({ isHealthy, errors }: DiskHealth): number {
  return errors + (isHealthy ? 0 : 1)
}

export function ioGroup(io: DiskIo | undefined): StatusGroup {
  return new GroupBuilder().read('DiskRdGbps', io?.readGbps, 0).read('DiskWrGbps', io?.writeGbps, 0).build()
}
