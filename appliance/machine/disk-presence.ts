import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { DISK_IDS, type DiskId, type DiskNames } from './disk-names.ts'
import { type MachineRoots, readText } from './kernel-files.ts'

export interface DiskIdentity {
  readonly name: string
  readonly isPresent: boolean
  /** The model as known to the kernel without asking the disk; empty if unknown. */
  readonly model: string
  readonly serial: string
}

/** Which of the disks are present. A disk that is not configured has no entry. */
export async function readDiskPresence(
  roots: MachineRoots,
  names: DiskNames,
  signal: AbortSignal,
): Promise<ReadonlyMap<DiskId, DiskIdentity>> {
  const found = new Map<DiskId, DiskIdentity>()
  for (const id of DISK_IDS) {
    const name = names[id]
    if (name === undefined) continue
    const folder = join(roots.sys, 'block', name)
    const isPresent = await access(folder).then(
      () => true,
      () => false,
    )
    const model = (await readText(join(folder, 'device/model'), signal)) ?? ''
    const serial =
      (await readText(join(folder, 'device/serial'), signal)) ??
      (await readText(join(folder, 'serial'), signal)) ??
      ''
    found.set(id, { name, isPresent, model, serial })
  }
  return found
}
