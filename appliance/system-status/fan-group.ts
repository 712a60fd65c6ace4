/** Group "fan" of the system status (API section 2.5): revolutions per minute. */
import type { HwmonReadings } from './hwmon-sensor.ts'
import { GroupBuilder, type StatusGroup } from './status-group.ts'

const FANS = 8 // stated by the API

export function fanGroup(hwmon: HwmonReadings | undefined): StatusGroup {
  const group = new GroupBuilder()
  for (let fan = 0; fan < FANS; fan++) group.read(`Fan_SYS${fan}`, hwmon?.fans[fan]?.value, 0)
  return group.build()
}
