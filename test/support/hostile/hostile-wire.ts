/** Writes arbitrary bytes to a socket, no faster than the other side reads. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { SeededRandom } from '../seeded-random.ts'

export class HostileWire {
  readonly #socket: Socket
  readonly #random: SeededRandom

  constructor(socket: Socket, random: SeededRandom) {
    this.#socket = socket
    this.#random = random
  }

  /** Whether the other side has closed. */
  get isClosed(): boolean {
    return this.#socket.destroyed || this.#socket.writableEnded
  }

  /** Sends the bytes in a few pieces, so that no reader can rely on their boundaries. */
  async send(bytes: Buffer | string): Promise<void> {
    const whole = Buffer.from(bytes)
    for (let at = 0; at < whole.length && !this.isClosed; ) {
      const end = this.#random.integer(1, 3) === 1 ? whole.length : this.#random.integer(at + 1, whole.length)
      if (!this.#socket.write(whole.subarray(at, end))) await this.#drained()
      await new Promise((resolve) => setImmediate(resolve))
      at = end
    }
  }

  async head(fields: readonly string[], status = '200 OK'): Promise<void> {
    await this.send(['HTTP/1.1 '.concat(status), ...fields, '', ''].join('\r\n'))
  }

  /** The bytes as chunks of random sizes, without the last chunk. */
  async chunks(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length && !this.isClosed; ) {
      const end = Math.min(bytes.length, at + this.#random.integer(1, 1 << this.#random.integer(4, 18)))
      await this.send(chunkOf(bytes.subarray(at, end)))
      at = end
    }
  }

  /** Repeats the text until the other side closes, at most `limitBytes`; then sends nothing more. */
  async flood(text: string, limitBytes: number): Promise<void> {
    const piece = Buffer.from(text.repeat(Math.ceil(65_536 / text.length)))
    for (let sent = 0; sent < limitBytes && !this.isClosed; sent += piece.length) {
      if (!this.#socket.write(piece)) await this.#drained()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  end(): void {
    this.#socket.end()
  }

  /** Resets the connection after the kernel has sent what was written. */
  async reset(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 5))
    this.#socket.resetAndDestroy()
  }

  async #drained(): Promise<void> {
    await Promise.race([once(this.#socket, 'drain'), once(this.#socket, 'close')]).catch(() => undefined)
  }
}

/** One chunk in chunked transfer coding. */
export function chunkOf(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}
