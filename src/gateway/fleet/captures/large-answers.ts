import { addAbortListener } from 'node:events'

interface Waiting {
  readonly device: string
  readonly begin: () => void
}

/**
 * Limits how many large answers of devices are read concurrently: a few over all devices, and one per device. That
 * bounds their total memory, and a single device cannot block the others.
 */
export class LargeAnswers {
  readonly #most: number
  readonly #reading = new Set<string>()
  readonly #waiting: Waiting[] = []

  constructor(most: number) {
    this.#most = most
  }

  get reading(): number {
    return this.#reading.size
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** Waits for its turn, or rejects with the signal's reason. Dispose the result when the answer has been read. */
  async begin(device: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted()
    if (!this.#mayBegin(device)) await this.#turnOf(device, signal)
    else this.#reading.add(device)
    return { [Symbol.dispose]: () => this.#end(device) }
  }

  #mayBegin(device: string): boolean {
    return this.#reading.size < this.#most && !this.#reading.has(device)
  }

  #turnOf(device: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = {
        device,
        begin: () => {
          leaving[Symbol.dispose]()
          resolve()
        },
      }
      this.#waiting.push(waiting)
      const leaving = addAbortListener(signal, () => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
        reject(signal.reason)
      })
    })
  }

  #end(device: string): void {
    this.#reading.delete(device)
    const index = this.#waiting.findIndex((waiting) => this.#mayBegin(waiting.device))
    const [next] = index < 0 ? [] : this.#waiting.splice(index, 1)
    if (next === undefined) return
    this.#reading.add(next.device)
    next.begin()
  }
}
