/** Temperatures, fans and power readings from the kernel's hwmon drivers. */

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type MachineRoots, readNumber, readText } from './kernel-files.ts'

export interface HwmonInput {
  /** The driver, such as "coretemp". */
  readonly chip: string
  /** The driver's name for the input, such as "Package id 0"; may be empty. */
  readonly label: string
  /** Degrees Celsius, revolutions per minute, or watts. */
  readonly value: number
}

export interface HwmonReadings {
  readonly temperatures: readonly HwmonInput[]
  readonly fans: readonly HwmonInput[]
  readonly powers: readonly HwmonInput[]
}

/** File name, and what one unit of the file is in ours. */
const KINDS = {
  temperatures: { file: /^temp\d+_input$/, unit: 1e-3 },
  fans: { file: /^fan\d+_input$/, unit: 1 },
  powers: { file: /^power\d+_(input|average)$/, unit: 1e-6 },
} as const

/** Reads the sensors, in the order of the kernel's numbers. Empty if there is no hwmon. */
export async function readHwmon(roots: MachineRoots, signal: AbortSignal): Promise<HwmonReadings> {
  const root = join(roots.sys, 'class/hwmon')
  const chips = inNumericOrder(await namesIn(root))
  const [temperatures, fans, powers] = await Promise.all([
    readKind(root, chips, { ...KINDS.temperatures, signal }),
    readKind(root, chips, { ...KINDS.fans, signal }),
    readKind(root, chips, { ...KINDS.powers, signal }),
  ])
  return { temperatures, fans, powers }
}

interface Kind {
  readonly file: RegExp
  readonly unit: number
  readonly signal: AbortSignal
}

async function readKind(root: string, chips: readonly string[], kind: Kind): Promise<HwmonInput[]> {
  const inputs: HwmonInput[] = []
  for (const chip of chips) inputs.push(...(await readChip(join(root, chip), kind)))
  return inputs
}

async function readChip(folder: string, { file, unit, signal }: Kind): Promise<HwmonInput[]> {
  const inputs: HwmonInput[] = []
  const chip = (await readText(join(folder, 'name'), signal)) ?? ''
  for (const name of inNumericOrder(await namesIn(folder)).filter((entry) => file.test(entry))) {
    const value = await readNumber(join(folder, name), signal)
    if (value === undefined) continue
    const label = (await readText(join(folder, name.replace(/_.*/, '_label')), signal)) ?? ''
    inputs.push({ chip, label, value: value * unit })
  }
  return inputs
}

async function namesIn(folder: string): Promise<string[]> {
  return await readdir(folder).catch(() => [])
}

function inNumericOrder(names: readonly string[]): readonly string[] {
  return names.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))
}

/** Whether each mains power supply is online, in the order of the kernel's names. Batteries are left out. */
export async function readPowerSupplies(
  roots: MachineRoots,
  signal: AbortSignal,
): Promise<readonly boolean[]> {
  const folder = join(roots.sys, 'class/power_supply')
  const supplies: boolean[] = []
  for (const name of (await readdir(folder).catch(() => [])).toSorted()) {
    if ((await readText(join(folder, name, 'type'), signal)) !== 'Mains') continue
    supplies.push((await readText(join(folder, name, 'online'), signal)) === '1')
  }
  return supplies
}
