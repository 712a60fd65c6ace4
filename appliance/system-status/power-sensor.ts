import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineRoots } from './machine-roots.ts'
import { readText } from './read-text.ts'

/** Whether each mains supply delivers, in the order of the kernel's names. Batteries are left out. */
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
