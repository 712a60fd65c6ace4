import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Log } from './log.ts'

export interface ConfigWatchOptions {
  readonly path: string
  /** Called after a change of the file, and on SIGHUP, which may also mean new secrets. */
  readonly reload: () => Promise<void>
  readonly log: Log
}

/** An editor or a mount writes in several steps; the last one counts. */
const SETTLE_MS = 200

/**
 * Has a configuration read again when its file changes or the process gets SIGHUP. The folder is
 * watched, not the file: editors, and Kubernetes, put a new file in the old one's place.
 */
export class ConfigWatch {
  readonly #options: ConfigWatchOptions
  readonly #watcher: ReturnType<typeof watch> | undefined
  readonly #onHangup = () => this.#request('SIGHUP')
  #text: string | undefined
  #settling: NodeJS.Timeout | undefined
  #reloading: Promise<void> = Promise.resolve()

  private constructor(options: ConfigWatchOptions, text: string | undefined) {
    this.#options = options
    this.#text = text
    this.#watcher = this.#watchFolder()
    process.on('SIGHUP', this.#onHangup)
  }

  /** `path` has been read just now. */
  static async start(options: ConfigWatchOptions): Promise<ConfigWatch> {
    return new ConfigWatch(options, await readOrNothing(options.path))
  }

  async close(): Promise<void> {
    process.off('SIGHUP', this.#onHangup)
    this.#watcher?.close()
    clearTimeout(this.#settling)
    await this.#reloading
  }

  #watchFolder(): ReturnType<typeof watch> | undefined {
    const { path, log } = this.#options
    try {
      const watcher = watch(dirname(path), { persistent: false }, () => this.#settle())
      watcher.on('error', (err) => log.warn('config.watch-failed', { path, err }))
      return watcher
    } catch (err) {
      // Out of watches, or a file system without them: SIGHUP still works.
      log.warn('config.watch-failed', { path, err })
      return undefined
    }
  }

  #settle(): void {
    clearTimeout(this.#settling)
    this.#settling = setTimeout(() => this.#request('file'), SETTLE_MS)
  }

  /** One reload after the other. */
  #request(cause: 'SIGHUP' | 'file'): void {
    this.#reloading = this.#reloading.then(() => this.#reload(cause))
  }

  async #reload(cause: 'SIGHUP' | 'file'): Promise<void> {
    const { path, reload, log } = this.#options
    const text = await readOrNothing(path)
    if (cause === 'file' && text === this.#text) return
    this.#text = text
    try {
      await reload()
      log.info('config.reloaded', { path, cause })
    } catch (error) {
      log.error('config.reload-refused', { path, cause, message: (error as Error).message })
    }
  }
}

/** A file that is away for a moment counts as changed when it is back. */
async function readOrNothing(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined)
}
