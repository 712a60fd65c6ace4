/** The network line to one device: counts traffic, can be slow, held or cut at a byte, or down. */
import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net'
import { NotedChanges } from '../noted-changes.ts'

const TICK_MS = 10
const HEAD = Buffer.from('HTTP/1.1 ')
const BUSY = Buffer.from('HTTP/1.1 503')
const DOWNLOAD = /^GET \/\S*pcap\/(single|timerange|splittime)\?/

interface Hold {
  leftBytes: number
  readonly promise: Promise<void>
  readonly resolve: () => void
}

export class DeviceLine implements AsyncDisposable {
  readonly #device: URL
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #changes = new NotedChanges()
  #isDown = false
  #hold: Hold | undefined
  #heldDownloads = 0
  /** Bytes sent by the device, heads and bodies. */
  receivedBytes = 0
  /** Answers that refused a reader above the limit. */
  refused = 0
  /** All answers. */
  served = 0
  /** Bytes per second of each connection; undefined: unlimited. */
  bytesPerSecond: number | undefined
  /** Each connection breaks after this many bytes from the device. */
  cutAfterBytes = Number.POSITIVE_INFINITY
  /** A connection is reset when it brings such a request. */
  refuses: ((request: string) => boolean) | undefined

  private constructor(device: URL) {
    this.#device = device
    this.#server = createServer((client) => this.#accept(client))
  }

  /** Starts a line to a device. */
  static async start(deviceUrl: string): Promise<DeviceLine> {
    const line = new DeviceLine(new URL(deviceUrl))
    line.#server.listen(0, '127.0.0.1')
    await once(line.#server, 'listening')
    return line
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get isDown(): boolean {
    return this.#isDown
  }

  /** While it is down, connections are reset: existing ones, and new ones at once. */
  set isDown(isDown: boolean) {
    this.#isDown = isDown
    if (isDown) for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  /** After this many more bytes of downloads these stand still, until the next `hold` or `release`. */
  hold(afterBytes: number): void {
    this.release()
    this.#hold = { leftBytes: afterBytes, ...Promise.withResolvers<void>() }
  }

  release(): void {
    this.#hold?.resolve()
    this.#hold = undefined
  }

  /** Resolves when a download stands still, whose next bytes are there. */
  async untilHeld(): Promise<void> {
    await this.#changes.until(() => this.#heldDownloads > 0)
  }

  /** Resolves when this many answers have begun. */
  async untilServed(answers: number): Promise<void> {
    await this.#changes.until(() => this.served >= answers)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release()
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #accept(client: Socket): void {
    client.on('error', () => undefined)
    if (this.#isDown) return void client.resetAndDestroy()
    const { hostname, port } = this.#device
    const device = createConnection({ port: Number(port), host: hostname, noDelay: true })
    device.on('error', () => undefined)
    for (const socket of [client, device]) this.#sockets.add(socket)
    let request = ''
    client.on('data', (bytes: Buffer) => {
      request = bytes.toString('latin1')
      if (this.refuses?.(request)) client.resetAndDestroy()
    })
    client.pipe(device)
    void this.#bring(device, client, () => DOWNLOAD.test(request)).finally(() => {
      for (const socket of [client, device]) this.#sockets.delete(socket)
      device.destroy()
      client.destroy()
    })
    client.once('close', () => device.destroy())
  }

  async #bring(device: Socket, client: Socket, isDownload: () => boolean): Promise<void> {
    let brought = 0
    try {
      for await (const bytes of device as AsyncIterable<Buffer>) {
        const allowed = bytes.subarray(0, Math.max(0, this.cutAfterBytes - brought))
        brought += allowed.length
        if (allowed.subarray(0, HEAD.length).equals(HEAD)) {
          this.served += 1
          this.#changes.note()
        }
        if (allowed.subarray(0, BUSY.length).equals(BUSY)) this.refused += 1
        this.receivedBytes += allowed.length
        for (const piece of this.#pieces(allowed)) {
          if (this.#hold !== undefined && isDownload()) await this.#passHold(client, piece.length)
          if (!client.write(piece)) await once(client, 'drain')
          if (this.bytesPerSecond !== undefined) await pause(TICK_MS)
        }
        if (allowed.length < bytes.length) return void client.resetAndDestroy()
      }
      client.end()
      await once(client, 'close')
    } catch {
      client.resetAndDestroy()
    }
  }

  /** Waits while downloads are held, or until the client has left. */
  async #passHold(client: Socket, bytes: number): Promise<void> {
    this.#heldDownloads += 1
    while (this.#hold !== undefined && this.#hold.leftBytes <= 0 && !client.destroyed) {
      this.#changes.note()
      await Promise.race([this.#hold.promise, new Promise((resolve) => client.once('close', resolve))])
    }
    this.#heldDownloads -= 1
    if (this.#hold !== undefined) this.#hold.leftBytes -= bytes
  }

  *#pieces(bytes: Buffer): Generator<Buffer> {
    const size = Math.ceil(((this.bytesPerSecond ?? Number.POSITIVE_INFINITY) / 1_000) * TICK_MS)
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
