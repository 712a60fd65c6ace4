import { statfs } from 'node:fs/promises'

export const MOUNT_IDS = ['System', 'Store0', 'Store1', 'Remote0', 'Remote1'] as const
export type MountId = (typeof MOUNT_IDS)[number]

export interface Space {
  readonly freeBytes: bigint
  readonly totalBytes: bigint
  /** Inodes. */
  readonly freeFiles: bigint
  /** Inodes, or 0 if the file system has no fixed number of them (btrfs). */
  readonly totalFiles: bigint
}

/** Space of the file system that holds this path. Fails with the system's error. */
export async function readSpace(path: string): Promise<Space> {
  const { bavail, blocks, bsize, ffree, files } = await statfs(path, { bigint: true })
  return {
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    freeFiles: ffree,
    totalFiles: files,
  }
}

/** Space of the file systems that hold these paths; one that cannot be read is left out. */
export async function readSpaces(
  paths: Readonly<Partial<Record<MountId, string | undefined>>>,
): Promise<ReadonlyMap<MountId, Space>> {
  const spaces = new Map<MountId, Space>()
  for (const id of MOUNT_IDS) {
    const path = paths[id]
    if (path === undefined) continue
    const found = await readSpace(path).catch(() => undefined)
    if (found !== undefined) spaces.set(id, found)
  }
  return spaces
}
