/** Mutual exclusion between processes, for as long as they live. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, ftruncateSync, openSync, statSync, writeSync } from 'node:fs'
import { isFullDisk } from './full-disk.ts'

/** Exit status of flock(1) if someone else holds the lock. */
const STATUS_TAKEN = 1

/**
 * Locks the file, creating it if missing, until disposed or the end of the process, however it ends. Node has no
 * flock(2), but a lock belongs to the open file: flock(1) locks a descriptor that it inherits, exits, and the lock
 * stays with our descriptor. The kernel releases it when that closes, so there are no stale locks. The file names its
 * owner, for people to read; the holder of the lock may remove it. Returns undefined if another process holds the
 * lock.
 */
export async function lockFile(path: string): Promise<Disposable | undefined> {
  for (;;) {
    const lock = await lockOpened(path)
    if (lock === undefined || lock.isAt(path)) return lock
    // The last holder has removed the file since we opened it, so others would lock a different one.
    lock[Symbol.dispose]()
  }
}

interface OpenedLock extends Disposable {
  /** Whether the locked file still has this path. */
  isAt(path: string): boolean
}

async function lockOpened(path: string): Promise<OpenedLock | undefined> {
  const descriptor = openSync(path, 'a+', 0o600)
  let held = false
  try {
    held = await takeLock(descriptor, path)
  } finally {
    if (!held) closeSync(descriptor)
  }
  if (!held) return undefined
  tellHolder(descriptor)
  return {
    isAt: (path) => statSync(path, { throwIfNoEntry: false })?.ino === fstatSync(descriptor).ino,
    [Symbol.dispose]() {
      if (held) closeSync(descriptor)
      held = false
    },
  }
}

/** A full disk is no reason to do without the lock. */
function tellHolder(descriptor: number): void {
  try {
    ftruncateSync(descriptor)
    writeSync(descriptor, `${process.pid}\n`)
  } catch (error) {
    if (!isFullDisk(error)) throw error
  }
}

async function takeLock(descriptor: number, path: string): Promise<boolean> {
  const child = spawn('flock', ['--exclusive', '--nonblock', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
  })
  let status: unknown
  try {
    ;[status] = await once(child, 'exit')
  } catch (cause) {
    throw new Error(`${path} cannot be locked: the program flock (Debian package util-linux) cannot be run`, {
      cause,
    })
  }
  if (status === 0 || status === STATUS_TAKEN) return status === 0
  throw new Error(`${path} cannot be locked: flock ended with ${String(status)}`)
}
