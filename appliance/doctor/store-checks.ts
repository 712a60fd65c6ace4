/** Checks the file system of the store: type, space, speed. */
import { randomBytes } from 'node:crypto'
import { open, statfs, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Finding, FindingList } from './finding.ts'

export interface StoreCheckOptions {
  readonly store: string
  /** While a capture is running, the doctor must not compete with it for the disk. */
  readonly isCapturing: boolean
  /** What all ports together can receive, in bytes per second; 0 = unknown. */
  readonly portBytesPerSecond: number
}

/** statfs(2) f_type. */
const FILE_SYSTEMS: ReadonlyMap<number, { readonly name: string; readonly caution?: string }> = new Map([
  [0xef53, { name: 'ext4' }],
  [0x58465342, { name: 'xfs' }],
  [0x9123683e, { name: 'btrfs', caution: 'it copies on every write, which costs speed' }],
  [0x2fc12fc1, { name: 'zfs', caution: 'it copies on every write, which costs speed' }],
  [0x794c7630, { name: 'overlay', caution: 'it is meant for containers: mount a disk at the store' }],
  [0x01021994, { name: 'tmpfs', caution: 'it is in memory: all captures are lost at a restart' }],
  [0x6969, { name: 'nfs', caution: 'a network between recorder and disk loses packets when it hangs' }],
])

const GIB = 2 ** 30
const MIB = 2 ** 20
const FREE_MIN_BYTES = GIB
const TEST_LIMIT_MS = 2_000
const TEST_MAX_BYTES = GIB
const CHUNK_BYTES = 4 * MIB
/** About 64 MiB, the interval at which the recorder syncs. */
const CHUNKS_PER_SYNC = 16

export async function checkStore(options: StoreCheckOptions): Promise<readonly Finding[]> {
  const list = new FindingList('store')
  const found = await nearestFolder(options.store)
  if (found === undefined) {
    list.problem('folder', {
      detail: `${options.store} cannot be reached`,
      fix: 'correct store, or mount it',
    })
    return list.findings
  }
  const { folder, space } = found
  if (folder === options.store) list.ok('folder', folder)
  else list.ok('folder', `${options.store} does not exist yet: the recorder creates it`)
  checkFileSystem(list, Number(space.type))
  const freeBytes = Number(space.bavail * space.bsize)
  const free = `${(freeBytes / GIB).toFixed(1)} GiB free`
  if (freeBytes >= FREE_MIN_BYTES) list.ok('space', free)
  else list.problem('space', { detail: free, fix: 'delete captures, or put the store on a larger disk' })
  await checkSpeed(list, { ...options, folder, freeBytes })
  return list.findings
}

async function nearestFolder(path: string) {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      return { folder, space: await statfs(folder, { bigint: true }) }
    } catch (error) {
      const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT'
      if (!isAbsent || folder === dirname(folder)) return undefined
    }
  }
}

function checkFileSystem(list: FindingList, type: number): void {
  const known = FILE_SYSTEMS.get(type)
  if (known === undefined) {
    list.warn('file system', {
      detail: `of an unknown kind (0x${type.toString(16)})`,
      fix: 'use ext4 or xfs',
    })
  } else if (known.caution === undefined) list.ok('file system', known.name)
  else list.warn('file system', { detail: `${known.name}: ${known.caution}`, fix: 'use ext4 or xfs' })
}

async function checkSpeed(
  list: FindingList,
  options: StoreCheckOptions & { readonly folder: string; readonly freeBytes: number },
): Promise<void> {
  const { folder, freeBytes, isCapturing, portBytesPerSecond } = options
  if (isCapturing) {
    list.ok('speed', 'not measured: a capture is running, and needs the disk')
    return
  }
  try {
    const { bytesPerSecond, longestSyncMs } = await measureWrites(folder, freeBytes / 10)
    const detail = `${Math.round(bytesPerSecond / MIB)} MiB/s written and synced, the longest sync ${Math.round(longestSyncMs)} ms`
    if (bytesPerSecond >= portBytesPerSecond) list.ok('speed', detail)
    else {
      const needed = Math.round(portBytesPerSecond / MIB)
      list.warn('speed', {
        detail: `${detail}; the ports together can deliver ${needed} MiB/s`,
        fix: 'a faster disk, a capture filter, a smaller snaplen, or a larger queueBytes for bursts',
      })
    }
  } catch (error) {
    list.warn('speed', {
      detail: `not measured: ${(error as Error).message}`,
      fix: 'run the doctor as the user of the recorder',
    })
  }
}

/** Limited in time and space. The file is unlinked from the start, so nothing of it stays, however this ends. */
async function measureWrites(folder: string, maxBytes: number) {
  const path = join(folder, `.doctor-${process.pid}`)
  await using file = await open(path, 'wx', 0o600)
  await unlink(path)
  // Compressing disks must not look faster than they are.
  const chunk = randomBytes(CHUNK_BYTES)
  const startedMs = performance.now()
  let longestSyncMs = 0
  let bytes = 0
  while (
    performance.now() - startedMs < TEST_LIMIT_MS &&
    bytes + CHUNK_BYTES <= Math.min(maxBytes, TEST_MAX_BYTES)
  ) {
    for (let written = 0; written < CHUNK_BYTES; )
      written += (await file.write(chunk, written, CHUNK_BYTES - written)).bytesWritten
    bytes += CHUNK_BYTES
    if ((bytes / CHUNK_BYTES) % CHUNKS_PER_SYNC === 0)
      longestSyncMs = Math.max(longestSyncMs, await sync(file))
  }
  longestSyncMs = Math.max(longestSyncMs, await sync(file))
  return { bytesPerSecond: bytes / ((performance.now() - startedMs) / 1000), longestSyncMs }
}

async function sync(file: { datasync(): Promise<void> }): Promise<number> {
  const startedMs = performance.now()
  await file.datasync()
  return performance.now() - startedMs
}
