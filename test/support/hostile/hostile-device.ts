/** A device on raw sockets that handles each download as the test registered it. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { OWN_LOOPBACK } from '../network/own-loopback.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { HOSTILE_ACTS, type HostileScene } from './hostile-behaviours.ts'
import { type HostileCompression, honestFile } from './hostile-case.ts'
import { HostileWire } from './hostile-wire.ts'

/** What it does if it is asked again for the rest of a download that it broke. */
export type HostileAgain = 'honest' | 'refuses' | 'hostile'

export interface HostileOrder {
  /** A name from HOSTILE_ACTS. */
  readonly act: string
  readonly again: HostileAgain
  readonly cut: number
  readonly packets: number
}

export interface HostileDeviceOptions {
  readonly name: string
  /** Which simulated capture it holds. */
  readonly index: number
  readonly random: SeededRandom
  /** Redirect target. */
  readonly elsewhere: string
}

const CONTROL: Readonly<Record<string, string>> = {
  '/api/v1/system/version': '{"version":"1.2.3","device":"hostile","build":""}',
  '/api/v1/system/status': '{"timestamp":1,"ver":"1","cat":{"cat_EnableCnt":0}}',
  '/stream/list': '{"Path":"/capture/","StreamList":true,"List":[]}',
}

/** Orders are identified by the end of the range, which is the same in a second request. */
export class HostileDevice implements AsyncDisposable {
  readonly name: string
  readonly #orders = new Map<bigint, { readonly order: HostileOrder; asked: number }>()
  readonly #options: HostileDeviceOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(options: HostileDeviceOptions) {
    this.name = options.name
    this.#options = options
    this.#server = createServer((socket) => void this.#serve(socket))
  }

  static async start(options: HostileDeviceOptions): Promise<HostileDevice> {
    const device = new HostileDevice(options)
    device.#server.listen(0, OWN_LOOPBACK)
    await once(device.#server, 'listening')
    return device
  }

  get url(): string {
    return `http://${OWN_LOOPBACK}:${(this.#server.address() as AddressInfo).port}`
  }

  /** Registers an order for downloads of ranges that end at `endNs`, from the first request on. */
  order(endNs: bigint, order: HostileOrder): void {
    this.#orders.set(endNs, { order, asked: 0 })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async #serve(socket: Socket): Promise<void> {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => this.#sockets.delete(socket))
    const target = await requestTarget(socket)
    if (target === undefined) return
    const url = new URL(target, this.url)
    const wire = new HostileWire(socket, this.#options.random)
    if (url.pathname === '/api/v1/pcap/timerange') return this.#download(wire, url.searchParams)
    const body = CONTROL[url.pathname] ?? '{"code":"not-found"}'
    const status = url.pathname in CONTROL ? '200 OK' : '404 Not Found'
    const fields = ['Content-Type: application/json', 'Connection: close', `Content-Length: ${body.length}`]
    await wire.head(fields, status)
    await wire.send(body)
    wire.end()
  }

  async #download(wire: HostileWire, query: URLSearchParams): Promise<void> {
    const entry = this.#orders.get(BigInt(query.get('TSEnd') ?? 0))
    if (entry === undefined) throw new Error(`no order for ${query}`)
    const { order } = entry
    entry.asked += 1
    if (entry.asked > 1 && order.again === 'refuses') return refuse(wire)
    const act = HOSTILE_ACTS[entry.asked > 1 && order.again === 'honest' ? 'polite' : order.act]
    if (act === undefined) throw new Error(`no act ${order.act}`)
    const compression = (query.get('Compression') ?? 'none') as HostileCompression
    const beginNs = BigInt(query.get('TSBegin') ?? 0)
    const scene: HostileScene = {
      wire,
      compression,
      cut: order.cut,
      elsewhere: `${this.#options.elsewhere}/api/v1/pcap/timerange?${query}`,
      file: honestFile(this.#options.index, order.packets, { compression, beginNs }),
    }
    await act(scene)
  }
}

/** As if the capture had been removed meanwhile. */
async function refuse(wire: HostileWire): Promise<void> {
  const body = '{"code":"unknown-capture","status":404,"detail":"it was deleted"}'
  const fields = [
    'Content-Type: application/problem+json',
    'Connection: close',
    `Content-Length: ${body.length}`,
  ]
  await wire.head(fields, '404 Not Found')
  await wire.send(body)
  wire.end()
}

/** Path and query of the request, once its head has arrived; undefined if the connection closed earlier. */
async function requestTarget(socket: Socket): Promise<string | undefined> {
  let text = ''
  socket.setEncoding('latin1')
  const closed = once(socket, 'close').catch(() => undefined)
  while (!text.includes('\r\n\r\n')) {
    const piece = await Promise.race([once(socket, 'data'), closed]).catch(() => undefined)
    if (typeof piece?.[0] !== 'string') return undefined
    text += piece[0]
  }
  // Anything else is discarded, but the end of the connection must be noticed.
  socket.resume()
  return text.split(' ', 2)[1]
}
