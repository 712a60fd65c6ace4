/** Group "power" of the system status (API section 2.5). */
import type { HwmonReadings } from './hwmon-sensor.ts'
import { GroupBuilder, type StatusGroup } from './status-group.ts'

/** Drivers that tell what the whole machine draws; others tell of a part of it. */
const WHOLE_MACHINE = /^(power_meter|pmbus|dps|psu|ibmpowernv)/

export function powerGroup(
  hwmon: HwmonReadings | undefined,
  supplies: readonly boolean[] | undefined,
): StatusGroup {
  const powers = hwmon?.powers.filter(({ chip }) => WHOLE_MACHINE.test(chip)) ?? []
  const watts = powers.reduce((sum, { value }) => sum + value, 0)
  return new GroupBuilder()
    .read('PSU0_Status', supplies?.[0], false)
    .read('PSU1_Status', supplies?.[1], false)
    .read('PSU_PowerWatt', powers.length === 0 ? undefined : Math.round(watts), 0)
    .build()
}
