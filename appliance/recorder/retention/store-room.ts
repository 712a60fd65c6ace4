/** The store's free space compared with what must stay free. */
import type { RetentionSettings } from '../../appliance-config.ts'
import { readSpace } from '../../machine/free-space-sensor.ts'

/** Bytes needed in addition to what is stored. */
export interface Need {
  /** Bytes needed in segments of captures, limited by `maxBytes`. */
  readonly stored: bigint
  /** Bytes needed on the disk, limited by `minFreeBytes`. */
  readonly disk: bigint
}
export const NOTHING: Need = { stored: 0n, disk: 0n }

/** How much must be removed. A number that is not positive is remaining space. */
export interface Lack {
  /** Bytes of segments, because of `maxBytes`. */
  readonly stored: bigint
  /** Bytes on the disk, because of `minFreeBytes`. */
  readonly disk: bigint
  /** Files (inodes). */
  readonly files: bigint
}

export function isLacking({ stored, disk, files }: Lack): boolean {
  return stored > 0n || disk > 0n || files > 0n
}

/** Missing bytes, whichever limit applies. */
export function missingBytes({ stored, disk }: Lack): bigint {
  return stored > disk ? stored : disk
}

export function plus(a: Lack, b: Lack): Lack {
  return { stored: a.stored + b.stored, disk: a.disk + b.disk, files: a.files + b.files }
}

export function minus(a: Lack, b: Lack): Lack {
  return { stored: a.stored - b.stored, disk: a.disk - b.disk, files: a.files - b.files }
}

export interface StoreRoomOptions {
  /** A folder on the file system of the store. */
  readonly folder: string
  readonly settings: Pick<RetentionSettings, 'maxBytes' | 'minFreeBytes'>
  /** The write rate of the running capture, measured over the last seconds. */
  readonly bytesPerSecond: () => number
}

/** Space is checked every second; a capture must not fill the disk between two checks. */
const SECONDS_AHEAD = 2
/** A full disk accepts no packets, so the measured rate is 0: the capture could not continue without some room. */
const MIN_FREE_BYTES = 4 * 1024 * 1024
/** A segment has four files. A file system of fewer than 100,000 inodes keeps 1 % of them free. */
const MIN_FREE_FILES = 1_000n
const MIN_FREE_FILES_SHARE = 100n

export class StoreRoom {
  readonly #options: StoreRoomOptions

  constructor(options: StoreRoomOptions) {
    this.#options = options
  }

  /** Bytes that stay free on the disk: the largest of `minFreeBytes`, two seconds of the capture rate, and 4 MiB. */
  get minFreeBytes(): bigint {
    const { settings, bytesPerSecond } = this.#options
    return BigInt(
      Math.max(settings.minFreeBytes, Math.ceil(SECONDS_AHEAD * bytesPerSecond()), MIN_FREE_BYTES),
    )
  }

  /** `heldBytes` is the current size of all segments. Fails with the system's error. */
  async lack(heldBytes: bigint, need: Need): Promise<Lack> {
    const { folder, settings } = this.#options
    const { freeBytes, freeFiles, totalFiles } = await readSpace(folder)
    const disk = this.minFreeBytes + need.disk - freeBytes
    const stored = heldBytes + need.stored - BigInt(settings.maxBytes)
    return {
      stored: settings.maxBytes > 0 ? stored : disk,
      disk,
      files: totalFiles === 0n ? 0n : minFreeFiles(totalFiles) - freeFiles,
    }
  }
}

function minFreeFiles(totalFiles: bigint): bigint {
  const share = totalFiles / MIN_FREE_FILES_SHARE
  return share < MIN_FREE_FILES ? share : MIN_FREE_FILES
}
