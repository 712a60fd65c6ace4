/** Groups "temperature", "fan" and "power" of the system status. */
import type { HwmonInput, HwmonReadings } from '../machine/hwmon-sensor.ts'
import { GroupBuilder, type StatusGroup } from './status-group.ts'

interface Place {
  readonly member: string
  readonly chip: RegExp
  readonly label: RegExp
  /** Which of the matching ones; default: the first. */
  readonly index?: number
}

const CPU_CHIP = /^(coretemp|k10temp|zenpower|cpu_thermal)$/
/** One input for a whole CPU, not one per core. */
const CPU_LABEL = /^(Package id \d+|Tctl|)$/
const NIC_CHIP = /^(mlx|ixgbe|i40e|ice|igb|i350|bnxt|nfp|sfc|cxgb|enp|eth)/

/** Where drivers and board makers put these. */
const PLACES: readonly Place[] = [
  { member: 'Temperature_CPU0', chip: CPU_CHIP, label: CPU_LABEL },
  { member: 'Temperature_CPU1', chip: CPU_CHIP, label: CPU_LABEL, index: 1 },
  { member: 'Temperature_PCH', chip: /^pch_/, label: /^/ },
  { member: 'Temperature_SYS', chip: /./, label: /^(SYSTIN|System( Temp)?|MB Temp)$/i },
  { member: 'Temperature_PER', chip: /./, label: /^(Peripheral( Temp)?|PER)$/i },
  { member: 'Temperature_NIC', chip: NIC_CHIP, label: /^(?!.*(module|transceiver))/i },
  { member: 'Temperature_AirIn', chip: /./, label: /inlet|air ?in/i },
  { member: 'Temperature_AirOut', chip: /./, label: /exhaust|outlet|air ?out/i },
  { member: 'Temperature_Transceiver0', chip: /./, label: /module|transceiver/i },
  { member: 'Temperature_Transceiver1', chip: /./, label: /module|transceiver/i, index: 1 },
]

/** Degrees Celsius. */
export function temperatureGroup(hwmon: HwmonReadings | undefined): StatusGroup {
  const group = new GroupBuilder()
  for (const place of PLACES) group.read(place.member, find(hwmon?.temperatures ?? [], place), 0)
  return group.build()
}

function find(inputs: readonly HwmonInput[], { chip, label, index = 0 }: Place): number | undefined {
  return inputs.filter((input) => chip.test(input.chip) && label.test(input.label))[index]?.value
}

const FANS = 8 // fixed by the API

/** Revolutions per minute. */
export function fanGroup(hwmon: HwmonReadings | undefined): StatusGroup {
  const group = new GroupBuilder()
  for (let fan = 0; fan < FANS; fan++) group.read(`Fan_SYS${fan}`, hwmon?.fans[fan]?.value, 0)
  return group.build()
}

/** Drivers that report the power of the whole machine; others report a part of it. */
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
