/** Group "ptp" of the system status. Offsets are nanoseconds, uptimes seconds. */
import type { ClockReadings } from '../machine/clock-sync-sensor.ts'
import { type Absent, GroupBuilder, type StatusGroup } from './status-group.ts'

/** The clocks of special capture hardware, which a network card does not have. */
const HARDWARE_ONLY: readonly (readonly [name: string, absent: Absent])[] = [
  ['SysOffset', 0],
  ['SysSync', false],
  ['SysUptime', 0],
  ['iSysOffset', 0],
  ['iSysSync', false],
  ['iSysUptime', 0],
  ['PPSPeriod', 0],
  ['PPSOffset', 0],
  ['PPSUptime', 0],
  ['PPSdPhase', 0],
  ['PPSdZero', 0],
  ['PPSCnt', 0],
  ['Clk156Period', 0],
  ['Clk156Offset', 0],
  ['Clk250Period', 0],
  ['Clk250Offset', 0],
  ['Clk322Period', 0],
  ['Clk322Offset', 0],
]

/** `nowNs`: packets are stamped by the system's clock, so both times are the same. */
export function ptpGroup(clocks: ClockReadings | undefined, nowNs: bigint): StatusGroup {
  const { ntp, grandmaster } = clocks ?? {}
  const group = new GroupBuilder()
    .set('TimeFPGA', nowNs)
    .set('TimeSYS', nowNs)
    .read('GMOffset', grandmaster?.offsetNs, 0)
    .read('GMSync', grandmaster?.isSynced, false)
    .read('GMMaster', grandmaster?.master, '')
    .read('GMUpTime', grandmaster?.syncedSeconds, 0)
    .read('NTPOffset', ntp?.offsetNs, 0)
    .read('NTPSync', ntp?.isSynced, false)
    .read('NTPMaster', ntp?.master || undefined, '')
    .read('NTPUptime', ntp?.syncedSeconds, 0)
  for (const [name, absent] of HARDWARE_ONLY) group.read(name, undefined, absent)
  return group.build()
}
