/**
 * The downloads of this process, and the export files that it is sending, so that a shutdown can wait for them and cut
 * the rest.
 */
export class RunningDownloads {
  readonly #running = new Set<AbortController>()
  #idle: (() => void) | undefined

  get count(): number {
    return this.#running.size
  }

  /** Aborting the controller cuts the download. */
  add(download: AbortController): void {
    this.#running.add(download)
  }

  /** The download has ended. */
  delete(download: AbortController): void {
    this.#running.delete(download)
    if (this.#running.size === 0) this.#idle?.()
  }

  /** Waits until none is running, at most `limitMs`; then cuts the rest with `reason` and waits for them to end. */
  async drain(limitMs: number, reason: Error): Promise<void> {
    if (this.#running.size === 0) return
    const idle = new Promise<void>((resolve) => {
      this.#idle = resolve
    })
    const cut = setTimeout(() => {
      for (const download of this.#running) download.abort(reason)
    }, limitMs)
    await idle
    clearTimeout(cut)
  }
}
