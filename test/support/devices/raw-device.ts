/** A device that answers every request with bytes chosen by the test, valid HTTP or not. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { OWN_LOOPBACK } from '../network/own-loopback.ts'
import { NotedChanges } from '../noted-changes.ts'

/** What happens to the connection when everything is written: it is closed, reset, or left open. */
export type RawEnd = 'close' | 'reset' | 'hang'

export interface RawAnswer {
  /** Each is written separately, after the previous one has been sent. */
  readonly writes: Iterable<Uint8Array>
  /** After each write. */
  readonly pauseMs?: number
  readonly end?: RawEnd
  /** With "hang": these bytes are sent when it resolves, then the connection is closed. */
  readonly added?: Promise<string | Uint8Array>
}

export class RawDevice implements AsyncDisposable {
  /** Heads of all requests. */
  readonly requests: string[] = []
  /** Whether everything was written and the connection hangs. */
  isHanging = false
  answer: RawAnswer = { writes: [] }
  /** Answers to the next requests, one each; after them, `answer`. */
  readonly next: RawAnswer[] = []
  /** Over all answers. */
  writtenBytes = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #changes = new NotedChanges()

  private constructor() {
    this.#server = createServer((socket) => void this.#serve(socket))
  }

  static async start(): Promise<RawDevice> {
    const device = new RawDevice()
    device.#server.listen(0, OWN_LOOPBACK)
    await once(device.#server, 'listening')
    return device
  }

  get url(): string {
    return `http://${OWN_LOOPBACK}:${(this.#server.address() as AddressInfo).port}`
  }

  /** Open connections. */
  get connections(): number {
    return this.#sockets.size
  }

  /** Resolves when `condition` holds; checked whenever a connection or request starts or ends. */
  async until(condition: () => boolean): Promise<void> {
    await this.#changes.until(condition)
  }

  /** Breaks all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #serve(socket: Socket): Promise<void> {
    this.#sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#changes.note()
    })
    this.#changes.note()
    this.requests.push(await readRequest(socket))
    this.#changes.note()
    const { writes, pauseMs = 0, end = 'close', added } = this.next.shift() ?? this.answer
    this.isHanging = false
    for (const bytes of writes) {
      if (socket.destroyed) return
      await new Promise<void>((resolve) => socket.write(bytes, () => resolve()))
      this.writtenBytes += bytes.length
      if (pauseMs > 0) await delay(pauseMs)
    }
    if (end === 'close') socket.end()
    if (end === 'reset') socket.resetAndDestroy()
    if (end !== 'hang') return
    this.isHanging = true
    this.#changes.note()
    if (added !== undefined) socket.end(await added)
  }
}

async function readRequest(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1')
  })
  while (!text.includes('\r\n\r\n') && !socket.destroyed)
    // A reset rejects both; the loop notices the closed socket.
    await Promise.race([once(socket, 'data'), once(socket, 'close')]).catch(() => undefined)
  return text
}

/** `body` in chunks of these sizes, cyclically; without the last chunk. */
export function chunked(body: Uint8Array, sizes: readonly number[]): Buffer {
  const parts: Uint8Array[] = []
  for (let at = 0, turn = 0; at < body.length; turn++) {
    const data = body.subarray(at, at + (sizes[turn % sizes.length] ?? 1))
    parts.push(Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n'))
    at += data.length
  }
  return Buffer.concat(parts)
}

/** Cut into pieces of these lengths, cyclically. */
export function* pieces(bytes: Uint8Array, lengths: readonly number[]): Generator<Uint8Array> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1
    yield bytes.subarray(at, at + length)
    at += length
  }
}

/** Repeats the text for as long as it is consumed. */
export function* endless(text: string): Generator<Uint8Array> {
  const bytes = Buffer.from(text, 'latin1')
  for (;;) yield bytes
}
