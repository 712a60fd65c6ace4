/** Group "io" of the system status (API section 2.5). */
import type { DiskIo } from './disk-io-sensor.ts'
import { GroupBuilder, type StatusGroup } from './status-group.ts'

export function ioGroup(io: DiskIo | undefined): StatusGroup {
  return new GroupBuilder().read('DiskRdGbps', io?.readGbps, 0).read('DiskWrGbps', io?.writeGbps, 0).build()
}
