import { statfs } from 'node:fs/promises'

export const MOUNT_IDS = ['System', 'Store0', 'Store1', 'Remote0', 'Remote1'] as const
export type MountId = (typeof MOUNT_IDS)[number]

export interface Space {
  readonly freeBytes: bigint
  readonly totalBytes: bigint
}

/** Space of the file systems that hold these paths; one that cannot be asked is left out. */
export async function readSpaces(
  paths: Readonly<Partial<Record<MountId, string | undefined>>>,
): Promise<ReadonlyMap<MountId, Space>> {
  const spaces = new Map<MountId, Space>()
  for (const id of MOUNT_IDS) {
    const path = paths[id]
    if (path === undefined) continue
    const found = await statfs(path, { bigint: true }).catch(() => undefined)
    if (!found) continue
    spaces.set(id, { freeBytes: found.bavail * found.bsize, totalBytes: found.blocks * found.bsize })
  }
  return spaces
}
