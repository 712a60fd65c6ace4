/**
 * A device that plays a computed capture at a steady pace and honours TSBegin and TSEnd. It serves four readers,
 * answers a fifth with 503, and counts readers exactly: a reader counts from its request until its connection or
 * answer has closed. It can lose power and come back, or fall silent: it then accepts connections and requests, and
 * sends nothing more.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { OWN_LOOPBACK } from '../network/own-loopback.ts'
import { DEVICE_PASSWORD } from '../suite-secrets.ts'
import { LIST_PARAMETERS_HEADER, listedPart } from './listed-part.ts'
import { SIMULATED_BEGIN_NS, type SimulatedCapture, simulatedCapture } from './simulated-capture.ts'

export const SIMULATED_USER = 'gateway'
export const SIMULATED_PASSWORD = DEVICE_PASSWORD
const SLOTS = 4

export interface SimulatedDeviceOptions {
  readonly index: number
  readonly packets: number
  readonly packetsPerTick: number
  readonly tickMs: number
  /** Number of captures in its list. Default: none. */
  readonly captures?: number
  /** Whether it always sends its whole list, unlike an appliance. */
  readonly sendsWholeLists?: boolean
  /** Reported as cat_EnableCnt instead of the real number: a planted fault. */
  readonly claimedReaders?: number | undefined
  /**
   * Whether the connection from this port has lost its other end without the device being able to notice (network
   * cut). Its reader is no one's fault, like one from outside.
   */
  readonly isStranded?: (remotePort: number) => boolean
}

/** A reader that was refused because four others were active, none of them stranded. */
export interface FifthReader {
  readonly device: string
  readonly atMs: number
}

/** A capture's entry in its list. Captures with the same number began at the same time on all devices. */
export function simulatedListItem(device: string, number: number): Readonly<Record<string, string>> {
  return {
    StreamName: `${device}_${number}`,
    StartTS: String(SIMULATED_BEGIN_NS + BigInt(number) * 1_000_000_000n),
    EndTS: String(SIMULATED_BEGIN_NS + BigInt(number + 1) * 1_000_000_000n),
  }
}

/** Number of the capture running at that time. */
function simulatedNumber(ns: bigint): number {
  return Number((ns - SIMULATED_BEGIN_NS) / 1_000_000_000n)
}

export class SimulatedDevice implements AsyncDisposable {
  readonly name: string
  readonly fifths: FifthReader[] = []
  mostReaders = 0
  /** Completed downloads. */
  served = 0
  /** Answers that are not downloads. */
  answered = 0
  /** Requests for its list. */
  lists = 0
  /** Captures sent in lists. */
  listed = 0
  isSilent = false
  /** Downloads answered with 503: fifth readers, and those refused because of stranded ones. */
  refused = 0
  readonly #options: SimulatedDeviceOptions
  #capture: SimulatedCapture
  readonly #readers = new Set<Socket>()
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined
  #port = 0

  private constructor(options: SimulatedDeviceOptions) {
    this.#options = options
    this.name = `d${options.index}`
    this.#capture = simulatedCapture(options.index, options.packets)
  }

  static async start(options: SimulatedDeviceOptions): Promise<SimulatedDevice> {
    const device = new SimulatedDevice(options)
    await device.powerOn()
    return device
  }

  /** Stays the same across power losses. */
  get url(): string {
    return `http://${OWN_LOOPBACK}:${this.#port}`
  }

  get readers(): number {
    return this.#readers.size
  }

  /** Listens, on the same port as before. */
  async powerOn(): Promise<void> {
    // The same timeout as an appliance.
    const server = createServer({ keepAliveTimeout: 65_000 }, (req, res) => void this.#answer(req, res))
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    server.listen(this.#port, OWN_LOOPBACK)
    await once(server, 'listening')
    this.#port = (server.address() as AddressInfo).port
    this.#server = server
  }

  /** Nothing listens any more; every connection is reset. */
  async powerOff(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    const closed = once(server, 'close')
    server.close()
    for (const socket of this.#sockets) socket.resetAndDestroy()
    await closed
  }

  /**
   * From now on it serves another device's capture, or only the first packets, as if its store had been overwritten.
   */
  holdCaptureOf(index: number, packets = this.#options.packets): void {
    this.#capture = simulatedCapture(index, packets)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.powerOff()
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.on('error', () => undefined)
    if (this.isSilent) return
    res.setHeader('Capfleet-Request-Id', randomUUID())
    const { pathname, searchParams } = new URL(req.url ?? '', 'http://device')
    if (pathname === '/api/v1/pcap/timerange') {
      if (req.method !== 'HEAD') return await this.#download(req, res, searchParams)
      res.writeHead(200, { 'Capfleet-Order': 'time' }).end()
      return
    }
    this.answered += 1
    const answer = pathname === '/stream/list' ? this.#list(res, searchParams) : this.#status(pathname)
    res.writeHead(answer === undefined ? 404 : 200, { 'Content-Type': 'application/json' })
    res.end(typeof answer === 'string' ? answer : JSON.stringify(answer ?? { code: 'not-found' }))
  }

  #status(path: string): unknown {
    const group = { module: 'system', timestamp: Math.floor(Date.now() / 1_000), ver: '1' }
    const answers: Record<string, unknown> = {
      '/api/v1/system/version': { version: '1.2.3', device: this.name, build: '' },
      '/api/v1/system/time_current': `${BigInt(Date.now()) * 1_000_000n}\n`,
      '/api/v1/system/status': {
        timestamp: group.timestamp,
        ver: '1',
        cat: {
          ...group,
          subsystem: 'cat',
          cat_EnableCnt: this.#options.claimedReaders ?? this.#readers.size,
        },
      },
    }
    return answers[path]
  }

  #list(res: ServerResponse, query: URLSearchParams): unknown {
    const { sendsWholeLists = false } = this.#options
    if (!sendsWholeLists) res.setHeaders(new Headers(LIST_PARAMETERS_HEADER))
    const List = sendsWholeLists ? [...this.#captures()] : listedPart(this.#captures(query.get('To')), query)
    this.lists += 1
    this.listed += List.length
    return { Path: '/capture/', StreamList: true, List }
  }

  /** Newest first, optionally without those that begin at or after `to`. */
  *#captures(to: string | null = null): Generator<Readonly<Record<string, unknown>>, void> {
    const { captures = 0 } = this.#options
    const before = to === null ? captures : simulatedNumber(BigInt(to) - 1n) + 1
    for (let number = Math.min(captures, before) - 1; number >= 0; number -= 1)
      yield simulatedListItem(this.name, number)
  }

  async #download(req: IncomingMessage, res: ServerResponse, query: URLSearchParams): Promise<void> {
    const { socket } = req
    if (this.#readers.size >= SLOTS) {
      this.refused += 1
      if (this.#trueReaders() >= SLOTS) this.fifths.push({ device: this.name, atMs: Date.now() })
      res.writeHead(503, { 'Content-Type': 'application/problem+json', 'Retry-After': '1' })
      res.end(JSON.stringify({ status: 503, code: 'download-slots-exhausted', detail: 'all are in use' }))
      return
    }
    this.#readers.add(socket)
    this.mostReaders = Math.max(this.mostReaders, this.#readers.size)
    res.once('close', () => this.#readers.delete(socket))
    await this.#play(res, query)
  }

  #trueReaders(): number {
    const { isStranded = () => false } = this.#options
    return [...this.#readers].filter(({ remotePort }) => !isStranded(remotePort ?? 0)).length
  }

  async #play(res: ServerResponse, query: URLSearchParams): Promise<void> {
    const { packetsPerTick, tickMs } = this.#options
    const [beginNs, endNs] = [query.get('TSBegin'), query.get('TSEnd')].map((text) => BigInt(text ?? 0))
    const { header, records } = this.#capture
    const chosen = records.filter(({ ns }) => ns >= (beginNs ?? 0n) && ns < (endNs ?? 0n))
    const after = query.get('After')
    res.writeHead(200, {
      Trailer: 'Capfleet-Complete, Capfleet-Packets',
      'Capfleet-Order': 'time',
      ...(after === null ? {} : { 'Capfleet-After': after }),
    })
    const closed = once(res, 'close')
    let skipped = Number(after)
    const send = (bytes: Buffer): Promise<void> => {
      const piece = bytes.subarray(skipped)
      skipped -= bytes.length - piece.length
      return new Promise((resolve) => res.write(piece, () => resolve()))
    }
    void send(header)
    for (let at = 0; at < chosen.length && !res.destroyed; at += packetsPerTick) {
      const piece = Buffer.concat(chosen.slice(at, at + packetsPerTick).map(({ bytes }) => bytes))
      await Promise.race([send(piece), closed])
      do await delay(tickMs)
      while (this.isSilent && !res.destroyed)
    }
    if (res.destroyed) return
    this.served += 1
    res.addTrailers({ 'Capfleet-Complete': '1', 'Capfleet-Packets': String(chosen.length) })
    res.end()
  }
}
