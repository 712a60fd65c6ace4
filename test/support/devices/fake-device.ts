import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { OWN_LOOPBACK } from '../network/own-loopback.ts'
import { NotedChanges } from '../noted-changes.ts'
import { DEVICE_PASSWORD } from '../suite-secrets.ts'
import { inListOrder, LIST_PARAMETERS_HEADER, listedPart } from './listed-part.ts'

/** How a simulated device handles the next requests; each member is a fault or a pace. */
export interface FakeBehaviour {
  readonly chunkBytes?: number
  readonly pauseMs?: number
  /** Accepts the request and never answers. */
  readonly silent?: boolean
  /** Breaks the connection after this many bytes of the body. */
  readonly dieAfterBytes?: number
  /** Sends this many bytes of the body, then nothing more until `resumed`. */
  readonly hangAfterBytes?: number
  /** Absent: never. */
  readonly resumed?: Promise<unknown>
  /** Number of skipped blocks that it reports at the end of a whole body. */
  readonly duplicates?: number
  readonly corruptBlocks?: number
  /** Announces the completion trailer but does not send it. */
  readonly withoutCompletion?: boolean
  /** Content-Length instead of chunks and trailers. */
  readonly withLength?: boolean
  /** Answers a download with this problem. */
  readonly problem?: { readonly status: number; readonly body: Readonly<Record<string, unknown>> }
  /** Answers an estimate with this problem. */
  readonly estimateProblem?: { readonly status: number; readonly body: Readonly<Record<string, unknown>> }
  /** Accepts requests whose path starts with this, and never answers them. */
  readonly silentBelow?: string
  /** Additional headers of a download. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sent instead of the capture. */
  readonly body?: Buffer
  /** Does not know After=, and sends the whole body. */
  readonly cannotSkip?: boolean
  /** Refuses HEAD for a download. */
  readonly knowsNoHead?: boolean
  /** Acts as another manufacturer's device: its answers do not identify it as an appliance. */
  readonly isForeign?: boolean
  /** Sends this many bytes of the answer to a control call, then nothing more. */
  readonly stopsAfterBytes?: number
  /** Answers parts of its list, like an appliance; otherwise the whole list, whatever the parameters. */
  readonly givesParts?: boolean
  /** Refuses a list with parameters. */
  readonly refusesParts?: boolean
  /** Echoes the query of a control call in a header, however long it is. */
  readonly echoesQuery?: boolean
}

interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
}

const USER = 'gateway'
/** Like a real device; a fifth reader is refused and recorded in `overruns`. */
const SLOTS = 4
const PROBED_PATHS: ReadonlySet<string> = new Set([
  '/api/v1/system/version',
  '/api/v1/system/time_current',
  '/api/v1/system/status',
  '/sysmaster/stats_summary',
])

/**
 * A real HTTP server that serves one PCAP for any download, the way an appliance does, and counts its readers. Its
 * behaviour is scripted by the test.
 */
export class FakeDevice implements AsyncDisposable {
  readonly name: string
  readonly user = USER
  readonly password = DEVICE_PASSWORD
  /** All requests except probes. */
  readonly requests: SeenRequest[] = []
  readonly probes: SeenRequest[] = []
  /** Answers to other control calls, by path. */
  readonly answers = new Map<string, unknown>()
  /** Further paths, which the test answers itself. */
  readonly handlers = new Map<string, (res: ServerResponse, url: string) => void>()
  /** Offset of its clock from the machine's. */
  clockAheadNs = 0n
  /** Reported in stats_summary. */
  oldestPacketNs = 0n
  behaviour: FakeBehaviour = {}
  captures: readonly Readonly<Record<string, unknown>>[] = []
  /** Opened so far. */
  connections = 0
  readers = 0
  mostReaders = 0
  overruns = 0
  /** Readers from outside, which bypass the gateway. */
  outsiders = 0
  readonly #server: Server
  readonly #pcap: Buffer
  readonly #changes = new NotedChanges()

  private constructor(name: string, pcap: Buffer) {
    this.name = name
    this.#pcap = pcap
    // Header limit like an appliance, which accepts long filters.
    this.#server = createServer({ maxHeaderSize: 65_536 }, (req, res) => void this.#answer(req, res))
    this.#server.on('connection', () => {
      this.connections += 1
    })
  }

  static async start(name: string, pcap: Buffer, port = 0): Promise<FakeDevice> {
    const device = new FakeDevice(name, pcap)
    device.#server.listen(port, OWN_LOOPBACK)
    await once(device.#server, 'listening')
    return device
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://${OWN_LOOPBACK}:${this.port}`
  }

  /** For the gateway's configuration. The test sets the environment variable FAKE_DEVICE_PASSWORD. */
  get config() {
    return { name: this.name, url: this.url, user: USER, password: { env: 'FAKE_DEVICE_PASSWORD' } }
  }

  /** Resolves when `condition` holds; checked whenever a reader starts or ends. */
  async until(condition: () => boolean): Promise<void> {
    await this.#changes.until(condition)
  }

  /** Simulates a power loss: nothing listens any more, all connections break. */
  async kill(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.kill()
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = req
    // The gateway's own health probes come at any time and do not concern tests.
    const isProbe = headers['user-agent'] !== undefined && PROBED_PATHS.has(url)
    ;(isProbe ? this.probes : this.requests).push({ method, url, headers })
    this.#changes.note()
    res.on('error', () => undefined)
    const expected = `Basic ${btoa(`${USER}:${DEVICE_PASSWORD}`)}`
    if (headers.authorization !== expected) return this.#problem(res, 401, { code: 'unauthenticated' })
    const { silent, silentBelow, estimateProblem } = this.behaviour
    if (silent || (silentBelow !== undefined && url.startsWith(silentBelow))) return
    const path = url.split('?', 1)[0] ?? ''
    if (!this.behaviour.isForeign) res.setHeader('Capfleet-Request-Id', randomUUID())
    const handler = this.handlers.get(path)
    if (handler !== undefined) return handler(res, url)
    if (path === '/api/v1/pcap/estimate' && estimateProblem)
      return this.#problem(res, estimateProblem.status, estimateProblem.body)
    if (/^\/api\/v1\/pcap\/(?!estimate|count)|^\/pcap\/(single|timerange|splittime)$/.test(path))
      return method === 'HEAD' ? this.#headOfDownload(url, res) : await this.#download(url, res)
    this.#control(path, url.slice(path.length), res)
  }

  #control(path: string, query: string, res: ServerResponse): void {
    const { dieAfterBytes, stopsAfterBytes, withLength, body, givesParts, refusesParts } = this.behaviour
    if (refusesParts && path === '/stream/list' && query !== '') {
      this.#problem(res, 400, { code: 'odd', detail: 'no parameters here' })
      return
    }
    if (givesParts && path === '/stream/list') res.setHeaders(new Headers(LIST_PARAMETERS_HEADER))
    const captures = givesParts
      ? listedPart(inListOrder(this.captures), new URLSearchParams(query))
      : this.captures
    const bodies: Record<string, unknown> = {
      '/api/v1/system/version': { version: '1.2.3', device: this.name, build: '' },
      '/api/v1/system/status': {
        cat: { cat_EnableCnt: this.readers + this.outsiders },
        ptp: { GMSync: true, GMOffset: 12.5 },
      },
      '/sysmaster/stats_summary': { packets_oldest_ts: String(this.oldestPacketNs) },
      '/api/v1/pcap/count': { end: true, packets: '7', bytes: '24', complete: true, corruptBlocks: '0' },
      '/stream/list': { Path: '/capture/', StreamList: true, List: captures },
      ...Object.fromEntries(this.answers),
    }
    if (path === '/api/v1/system/time_current' && body === undefined) {
      res.end(`${BigInt(Date.now()) * 1_000_000n + this.clockAheadNs}\n`)
      return
    }
    const answer = body ?? (path in bodies ? Buffer.from(JSON.stringify(bodies[path])) : undefined)
    if (answer === undefined) {
      this.#problem(res, 404, { code: 'not-found', detail: `no ${path}` })
      return
    }
    res.setHeader('Content-Type', 'application/json')
    res.setHeader('Set-Cookie', 'session=1')
    if (this.behaviour.echoesQuery) res.setHeader('Capfleet-Ignored', query)
    if (withLength) res.setHeader('Content-Length', answer.length)
    if (stopsAfterBytes !== undefined) {
      res.write(answer.subarray(0, stopsAfterBytes))
      return
    }
    if (dieAfterBytes === undefined) {
      res.end(answer)
      return
    }
    res.write(answer.subarray(0, dieAfterBytes), () => res.destroy())
  }

  #headOfDownload(url: string, res: ServerResponse): void {
    const { problem, headers, knowsNoHead } = this.behaviour
    const after = new URLSearchParams(url.split('?')[1]).get('After')
    if (knowsNoHead) this.#problem(res, 405, { code: 'method-not-allowed' })
    else if (problem) this.#problem(res, problem.status, problem.body)
    else res.writeHead(200, { ...(after === null ? {} : { 'Capfleet-After': after }), ...headers }).end()
  }

  async #download(url: string, res: ServerResponse): Promise<void> {
    const { problem } = this.behaviour
    if (problem) return this.#problem(res, problem.status, problem.body)
    if (this.readers + this.outsiders >= SLOTS) {
      if (this.outsiders === 0) this.overruns += 1
      return this.#problem(res, 503, { code: 'download-slots-exhausted', detail: 'all four are in use' })
    }
    this.readers += 1
    this.mostReaders = Math.max(this.mostReaders, this.readers)
    res.once('close', () => {
      this.readers -= 1
      this.#changes.note()
    })
    this.#changes.note()
    const after = new URLSearchParams(url.split('?')[1]).get('After')
    await this.#send(res, this.behaviour.cannotSkip ? null : after)
  }

  async #send(res: ServerResponse, after: string | null): Promise<void> {
    const { chunkBytes = 65_536, pauseMs = 0, dieAfterBytes, hangAfterBytes, withLength } = this.behaviour
    const {
      withoutCompletion,
      body = this.#pcap,
      headers,
      corruptBlocks = 0,
      duplicates,
      resumed,
    } = this.behaviour
    const limit = Math.min(dieAfterBytes ?? body.length, hangAfterBytes ?? body.length, body.length)
    if (withLength) res.writeHead(200, { 'Content-Length': body.length })
    else
      res.writeHead(200, {
        Trailer: 'Capfleet-Complete, Capfleet-Packets, Capfleet-Corrupt-Blocks, Capfleet-Duplicates',
        'Capfleet-Damaged-Segments': '0',
        ...(after === null ? {} : { 'Capfleet-After': after }),
        ...headers,
      })
    const closed = once(res, 'close')
    const send = async (from: number, to: number) => {
      for (let at = from; at < to && !res.destroyed; at += chunkBytes) {
        const piece = body.subarray(at, Math.min(to, at + chunkBytes))
        await Promise.race([new Promise<void>((resolve) => res.write(piece, () => resolve())), closed])
        if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
    }
    await send(Number(after), limit)
    if (hangAfterBytes !== undefined) {
      if (resumed === undefined) return
      await Promise.race([resumed, closed])
      await send(Math.max(limit, Number(after)), body.length)
    }
    if (dieAfterBytes !== undefined) {
      res.destroy()
      return
    }
    if (!withLength && !withoutCompletion)
      res.addTrailers({
        'Capfleet-Complete': corruptBlocks > 0 ? '0' : '1',
        'Capfleet-Packets': '7',
        'Capfleet-Corrupt-Blocks': String(corruptBlocks),
        ...(duplicates === undefined ? {} : { 'Capfleet-Duplicates': String(duplicates) }),
      })
    res.end()
  }

  #problem(res: ServerResponse, status: number, body: Readonly<Record<string, unknown>>): void {
    res.writeHead(status, { 'Content-Type': 'application/problem+json', 'Retry-After': '1' })
    res.end(JSON.stringify({ status, ...body }))
  }
}
