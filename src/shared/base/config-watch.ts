import { hash } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Log } from './log.ts'

export interface ConfigWatchOptions {
  /** Files, and folders of files, that are read together. */
  readonly paths: readonly string[]
  /** Called after a change of the files, and on SIGHUP, which may also mean new secrets. */
  readonly reload: () => Promise<void>
  readonly log: Log
}

/** An editor or a mount writes in several steps; only the last one matters. */
const SETTLE_MS = 200
/** Something else in the folder, such as a log, may be written all the time. */
const SETTLE_MAX_MS = 2_000

/**
 * Reloads a configuration when its files change or the process gets SIGHUP. Watches their folders, not the files,
 * because editors and Kubernetes replace files.
 */
export class ConfigWatch {
  readonly #options: ConfigWatchOptions
  readonly #watchers: readonly FSWatcher[]
  readonly #onHangup = () => this.#request('SIGHUP')
  /** Digests, because some of the files are secret. */
  #digests: string
  #settling: NodeJS.Timeout | undefined
  /** The first change that has not been processed (performance.now()). */
  #unsettledMs: number | undefined
  #reloading: Promise<void> = Promise.resolve()

  private constructor(options: ConfigWatchOptions, digests: string, folders: ReadonlySet<string>) {
    this.#options = options
    this.#digests = digests
    this.#watchers = [...folders].flatMap((folder) => this.#watchFolder(folder))
    process.on('SIGHUP', this.#onHangup)
  }

  /** Call it right after the files have been read. */
  static async start(options: ConfigWatchOptions): Promise<ConfigWatch> {
    const folderOf = async (path: string) => ((await isFolder(path)) ? path : dirname(path))
    const folders = new Set(await Promise.all(options.paths.map(folderOf)))
    return new ConfigWatch(options, await digestsOf(options.paths), folders)
  }

  async close(): Promise<void> {
    process.off('SIGHUP', this.#onHangup)
    for (const watcher of this.#watchers) watcher.close()
    clearTimeout(this.#settling)
    await this.#reloading
  }

  #watchFolder(folder: string): FSWatcher[] {
    const { log } = this.#options
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#settle())
      watcher.on('error', (err) => log.warn('config.watch-failed', { folder, err }))
      return [watcher]
    } catch (err) {
      // Out of inotify watches, or a file system without them: SIGHUP still works.
      log.warn('config.watch-failed', { folder, err })
      return []
    }
  }

  #settle(): void {
    const nowMs = performance.now()
    this.#unsettledMs ??= nowMs
    const leftMs = Math.max(0, this.#unsettledMs + SETTLE_MAX_MS - nowMs)
    clearTimeout(this.#settling)
    this.#settling = setTimeout(
      () => {
        this.#unsettledMs = undefined
        this.#request('file')
      },
      Math.min(SETTLE_MS, leftMs),
    )
  }

  /** Runs one reload after another. */
  #request(cause: 'SIGHUP' | 'file'): void {
    this.#reloading = this.#reloading.then(() => this.#reload(cause))
  }

  async #reload(cause: 'SIGHUP' | 'file'): Promise<void> {
    const { paths, reload, log } = this.#options
    const digests = await digestsOf(paths)
    if (cause === 'file' && digests === this.#digests) return
    this.#digests = digests
    try {
      await reload()
      log.info('config.reloaded', { paths, cause })
    } catch (error) {
      log.error('config.reload-refused', { paths, cause, message: (error as Error).message })
    }
  }
}

/** A file that is missing for a moment counts as changed when it is back. */
async function digestsOf(paths: readonly string[]): Promise<string> {
  return (await Promise.all(paths.map(digestOf))).join()
}

async function digestOf(path: string): Promise<string> {
  if (!(await isFolder(path))) {
    const file = await readFile(path).catch(() => undefined)
    return file === undefined ? 'none' : hash('sha256', file)
  }
  const names = (await readdir(path)).sort()
  const digests = await digestsOf(names.map((name) => join(path, name)))
  return hash('sha256', [...names, digests].join('/'))
}

async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  return found?.isDirectory() ?? false
}
