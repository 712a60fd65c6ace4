import type { GatewayClient } from '../../gateway-client.ts'
import { createProgressBar, type ProgressBar } from '../common/progress-bar.ts'
import type { DownloadWatch } from './download-session.ts'
import { watchQueue } from './queue-watch.ts'

/** The messages of a download on stderr: a progress bar on a terminal, otherwise only events. */
export class DownloadTalk implements DownloadWatch, Disposable {
  readonly #client: GatewayClient
  readonly #name: string
  readonly #isQuiet: boolean
  #bar: ProgressBar
  #totalBytes: number | undefined
  /** Without a terminal the position in the queue is reported once. */
  #hasToldPlace = false

  constructor(
    client: GatewayClient,
    { name, isQuiet }: { readonly name: string; readonly isQuiet: boolean },
  ) {
    this.#client = client
    this.#name = name
    this.#isQuiet = isQuiet
    this.#bar = createProgressBar(name)
  }

  /** Number of bytes that were there before. */
  begin(bytes: number): void {
    this.#bar = createProgressBar(this.#name, { from: bytes })
  }

  /** The bar shows a percentage as soon as the total is known, which may be never. */
  async learnTotal(ask: () => Promise<number | undefined>): Promise<void> {
    if (!this.#isQuiet && process.stderr.isTTY) this.#totalBytes = await ask().catch(() => undefined)
  }

  asking(): Disposable {
    if (this.#isQuiet) return { [Symbol.dispose]: () => undefined }
    return watchQueue(this.#client, (text) => {
      if (process.stderr.isTTY) this.#bar.tell(text)
      else if (!this.#hasToldPlace) this.say(text)
      this.#hasToldPlace = true
    })
  }

  progress(bytes: number): void {
    if (!this.#isQuiet) this.#bar.update(bytes, this.#totalBytes)
  }

  say(text: string): void {
    if (this.#isQuiet) return
    this.#bar.clear()
    process.stderr.write(`${this.#name}: ${text}\n`)
  }

  finish(summary: string): void {
    if (!this.#isQuiet) this.#bar.finish(summary)
  }

  clear(): void {
    if (!this.#isQuiet) this.#bar.clear()
  }

  [Symbol.dispose](): void {
    this.clear()
  }
}
