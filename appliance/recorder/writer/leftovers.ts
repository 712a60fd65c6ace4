import { opendir, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Files and folders that belong to no capture, left by interrupted imports and removals. Removing them may take long;
 * disposing this object stops the removal between two files.
 */
export class Leftovers implements AsyncDisposable {
  readonly #end = new AbortController()
  #paths: readonly string[]
  #removing: Promise<void> | undefined
  /** The removal of a path that is under way. */
  readonly #running = new Map<string, Promise<void>>()

  constructor(paths: readonly string[]) {
    this.#paths = paths
  }

  /** Aborts when disposed. */
  get signal(): AbortSignal {
    return this.#end.signal
  }

  /** Removes the leftovers, unless disposed. Fails with the system's error, and may then be called again. */
  remove(): Promise<void> {
    this.#removing ??= this.#remove().finally(() => {
      this.#removing = undefined
    })
    return this.#removing
  }

  /** Removes this one now if it is a leftover, because its name is needed. */
  async removeFirst(path: string): Promise<void> {
    if (!this.#paths.includes(path)) return
    // One at a time: another one may otherwise remove what has this name by then.
    const running = this.#running.get(path) ?? this.#removePath(path)
    this.#running.set(path, running)
    await running
  }

  async #removePath(path: string): Promise<void> {
    try {
      await removeTree(path, this.signal)
      this.#paths = this.#paths.filter((other) => other !== path)
    } finally {
      this.#running.delete(path)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error('the recorder is shutting down'))
    await this.#removing?.catch(() => undefined)
  }

  async #remove(): Promise<void> {
    try {
      for (let [path] = this.#paths; path !== undefined; [path] = this.#paths) await this.removeFirst(path)
    } catch (error) {
      if (!this.signal.aborted) throw error
    }
  }
}

/**
 * Removes a file, or a folder with everything in it; succeeds if it does not exist. Stops between two files when the
 * signal aborts. Fails with the system's error, or with the signal's reason.
 */
export async function removeTree(path: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  try {
    await unlink(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return
    // Linux returns EISDIR, POSIX EPERM.
    if (code !== 'EISDIR' && code !== 'EPERM') throw error
    for await (const entry of await opendir(path)) await removeTree(join(path, entry.name), signal)
    await rmdir(path)
  }
}
