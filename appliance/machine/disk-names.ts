/** Maps the disks of the machine to those of the API. */

import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type MachineRoots, readText } from './kernel-files.ts'

export const DISK_IDS = [
  'os0',
  'ssd0',
  'ssd1',
  'ssd2',
  'ssd3',
  'ssd4',
  'ssd5',
  'ssd6',
  'ssd7',
  'par0',
] as const
export type DiskId = (typeof DISK_IDS)[number]

/** API id -> name in /sys/block, such as "nvme0n1". */
export type DiskNames = Readonly<Partial<Record<DiskId, string>>>

/** Whole disks that hold data; not loop devices, RAM disks or optical drives. */
const DISK = /^(sd[a-z]+|nvme\d+n\d+|vd[a-z]+|xvd[a-z]+|mmcblk\d+)$/

/** The disk that holds / is os0; the other non-removable ones are ssd0, ssd1 ... by name. */
export async function detectDisks(roots: MachineRoots, signal: AbortSignal): Promise<DiskNames> {
  const folder = join(roots.sys, 'block')
  const names: string[] = []
  for (const name of await readdir(folder).catch(() => [])) {
    if (DISK.test(name) && (await readText(join(folder, name, 'removable'), signal)) !== '1') names.push(name)
  }
  const system = await systemDisk(roots)
  const others = names.filter((name) => name !== system).sort()
  const found = [
    ...(system === undefined || !names.includes(system) ? [] : [['os0', system] as const]),
    ...SSD_IDS.flatMap((id, index) => (others[index] === undefined ? [] : [[id, others[index]] as const])),
  ]
  return Object.fromEntries(found)
}

const SSD_IDS = DISK_IDS.filter((id) => id.startsWith('ssd'))

async function systemDisk(roots: MachineRoots): Promise<string | undefined> {
  try {
    const { dev } = await stat('/')
    // The kernel's encoding of a device number in 32 bits.
    const major = (dev >> 8) & 0xfff
    const minor = (dev & 0xff) | ((dev >> 12) & 0xfff00)
    const path = await realpath(join(roots.sys, 'dev/block', `${major}:${minor}`))
    const isPartition = await stat(join(path, 'partition')).catch(() => undefined)
    return basename(isPartition === undefined ? path : dirname(path))
  } catch {
    return undefined
  }
}
