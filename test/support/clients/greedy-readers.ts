/** Clients that each download repeatedly, as fast as they can, until dispose. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { eventually } from '../eventually.ts'

export interface Downloaded {
  /** Completed downloads. */
  readonly downloads: number
  readonly bytes: number
}

export interface GreedyReadersOptions {
  readonly urls: readonly string[]
  /** name:password */
  readonly user: string
}

/** Real clients run on other machines: here they should take little CPU time from the tested program. */
const NICE = '10'

export class GreedyReaders implements AsyncDisposable {
  readonly #options: GreedyReadersOptions
  readonly #stop = new AbortController()
  readonly #readers: readonly Promise<void>[]
  readonly #failures: string[] = []
  readonly #done: number[]
  #bytes = 0

  private constructor(options: GreedyReadersOptions) {
    this.#options = options
    this.#done = options.urls.map(() => 0)
    this.#readers = options.urls.map((url, index) => this.#read(url, index))
  }

  /** Resolves when each has completed a download. */
  static async start(options: GreedyReadersOptions): Promise<GreedyReaders> {
    const readers = new GreedyReaders(options)
    const everyOne = (): boolean => readers.#failures.length > 0 || readers.#done.every((count) => count > 0)
    await eventually(everyOne, { message: 'every client has downloaded' })
    return readers
  }

  /** The result so far. Fails if any download failed. */
  get downloaded(): Downloaded {
    if (this.#failures.length > 0) throw new Error(this.#failures.join('\n'))
    return { downloads: this.#done.reduce((sum, count) => sum + count, 0), bytes: this.#bytes }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#readers)
  }

  async #read(url: string, index: number): Promise<void> {
    const format = '%{http_code} %{size_download}'
    const args = ['-n', NICE, 'curl', '-sS', '-u', this.#options.user, '-o', '/dev/null', '-w', format, url]
    while (!this.#stop.signal.aborted && this.#failures.length === 0) {
      const child = spawn('nice', args, { stdio: ['ignore', 'pipe', 'pipe'] })
      const kill = (): void => void child.kill('SIGKILL')
      this.#stop.signal.addEventListener('abort', kill)
      const [said, complaint, [status]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'close'),
      ])
      this.#stop.signal.removeEventListener('abort', kill)
      if (this.#stop.signal.aborted) return
      if (status !== 0 || !said.startsWith('200 ')) this.#failures.push(`${url}: ${said} ${complaint}`)
      this.#done[index] = (this.#done[index] ?? 0) + 1
      this.#bytes += Number(said.split(' ')[1])
    }
  }
}
