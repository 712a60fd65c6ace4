import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { CapfleetError } from '../../src/base/error.ts'
import type { StorePaths } from '../store/store-paths.ts'

/** flock(1) says by this exit status that somebody else holds the lock. */
const STATUS_TAKEN = 1

/**
 * Makes this process the store's only writer until dispose or the end of the process, however it
 * ends. Node has no flock(2), but a lock belongs to the open file: flock(1) takes it on a
 * descriptor that it inherits, exits, and the lock stays with our descriptor. The kernel gives it
 * up when that closes, so there is no stale lock to judge.
 * Fails with store-unavailable when another process is the writer.
 */
export async function lockStore(paths: StorePaths): Promise<Disposable> {
  const descriptor = openSync(paths.lock, 'a+', 0o600)
  try {
    await takeLock(descriptor, paths)
    ftruncateSync(descriptor)
    writeSync(descriptor, `${process.pid}\n`)
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
  let held = true
  return {
    [Symbol.dispose]() {
      if (held) closeSync(descriptor)
      held = false
    },
  }
}

async function takeLock(descriptor: number, paths: StorePaths): Promise<void> {
  const child = spawn('flock', ['--exclusive', '--nonblock', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
  })
  let status: unknown
  try {
    ;[status] = await once(child, 'exit')
  } catch (cause) {
    throw new CapfleetError(
      'store-unavailable',
      'the program flock (Debian package util-linux) cannot be run; a store cannot be written without it',
      { cause },
    )
  }
  if (status === 0) return
  if (status === STATUS_TAKEN) {
    const holder = readFileSync(paths.lock, 'utf8').trim()
    throw new CapfleetError(
      'store-unavailable',
      `another recorder (process ${holder || 'unknown'}) is writing the store ${paths.root}; stop it first`,
    )
  }
  throw new CapfleetError(
    'store-unavailable',
    `cannot lock ${paths.lock}: flock ended with ${String(status)}`,
  )
}
