/**
 * An appliance of another manufacturer, which implements the API document and nothing else: no request id, no
 * trailers, no problem bodies, no After; it silently ignores unknown parameters.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { PCAP_HEADER_BYTES } from '../../../src/shared/pcap/pcap-sizes.ts'
import { type FrameCondition, parseFrameFilter } from '../../../src/shared/query/filter/frame-filter.ts'
import { OWN_LOOPBACK } from '../network/own-loopback.ts'
import { NotedChanges } from '../noted-changes.ts'
import { makePacket, makePcap, makeRecord } from '../packets/packet-maker.ts'
import type { PcapRecord } from '../packets/pcap-records.ts'
import { pause } from '../pause.ts'

/** How it refuses a stream above its limit; "wait": it holds the request until one ends. */
export type LimitStyle = '503' | '503 with Retry-After' | '429' | 'text' | 'nothing' | 'reset' | 'wait'

const NOTHING = Buffer.alloc(0)
const RECORD_HEADER_BYTES = 16
const CAPTURED_BYTES = 64
const NS_PER_S = 1_000_000_000n

export const API_BEGIN_NS = 1_793_610_000_000_000_000n
export const API_STEP_NS = 60_000_000n
/** Record size of each packet in a file. */
export const API_RECORD_BYTES = RECORD_HEADER_BYTES + CAPTURED_BYTES
export const API_CAPTURE = 'cap_20261102_0900'

export interface ApiBehaviour {
  readonly streamsMax?: number
  readonly limit?: LimitStyle
  /** A stream that has ended still counts until another one has been refused. */
  readonly isFreedLate?: boolean
  /**
   * Which packets its time ranges have: also those at the end; all of each second that they touch; those from the whole
   * second before the start to the one before the end; or by times that are 300 ns earlier than in the file.
   */
  readonly ranges?: 'inclusive' | 'seconds' | 'seconds, rounded down' | 'earlier'
  /** Timestamps have microsecond resolution. */
  readonly isCoarse?: boolean
  /** Silently ignores these parameters. */
  readonly ignores?: readonly ('FilterBPF' | 'FilterFrame' | 'Slice')[]
  /** Conditions of FilterFrame that it heeds: all, those of the capture port, those with ==, or the first one. */
  readonly frames?: 'all' | 'ports' | 'equal' | 'first'
  /** Its packets of odd numbers are in tunnels: "udp port 4789" finds them, and "inner" what is inside of them. */
  readonly tunnels?: 'looks inside' | 'ignores FilterBPFDecap'
  /** It heeds Compression, with gzip. */
  readonly compresses?: boolean
  /** Of its software; default: 7.1. */
  readonly version?: string
  /** It refuses the filter that no packet passes. */
  readonly refusesEmpty?: boolean
  /** Files are big-endian. */
  readonly isBigEndian?: boolean
  /** Order of the packets it sends; default: by time. */
  readonly order?: (records: readonly PcapRecord[]) => readonly PcapRecord[]
  /** Answers are chunked. */
  readonly isChunked?: boolean
  /** This many zero bytes follow its packets. */
  readonly zeros?: number
  /** Answers end by closing the connection, as with HTTP/1.0. */
  readonly endsByClose?: 'whole' | 'half'
  /** Speaks HTTP/1.0: no chunks, one answer per connection. */
  readonly isOldHttp?: boolean
  /** Refuses Basic authentication and names the scheme that it wants. */
  readonly wantsLogin?: string
  /** Redirects callers to an address where it answers. */
  readonly redirects?: boolean
  /** Form of its capture list: a bare array, null for none, times as numbers. */
  readonly list?: 'array' | 'null' | 'numbers'
  /** The record in the middle of its answers claims more bytes than a packet can have. */
  readonly isDamaged?: boolean
  /** Paths that do not exist. */
  readonly missing?: RegExp
  /** Answers an HTML page at this path. */
  readonly pageAt?: string
  /** Downloads are answered after this resolves. */
  readonly search?: (target: string) => Promise<unknown>
  /** Streams that have a place wait for what it gives before they begin, and keep their place when the client has left. */
  readonly scan?: (target: string) => Promise<unknown> | undefined
  /** Answers with a filter for a host have no end: valid packets follow as fast as they are read, or bytes of one packet. */
  readonly endless?: 'packets' | 'bytes'
  /** Streams wait for this before they end. */
  readonly held?: Promise<unknown>
  /** The refusal of a stream above the limit waits for this. */
  readonly refusalHeld?: Promise<unknown>
}

/** Where and how a stream breaks off. */
export interface StreamBreak {
  /** Of the body; after a reset, the client may lose the last bytes. */
  readonly afterBytes: number
  readonly by: 'reset' | 'close'
}

export class ApiDevice implements AsyncDisposable {
  readonly name: string
  readonly password = 'secret-of-another-maker'
  readonly records: readonly PcapRecord[]
  /** This many of the next streams are reset in the middle. */
  breaksLeft = 0
  /** Breaks of the following streams, in order. */
  readonly breaks: StreamBreak[] = []
  /** In the next stream after a break, the first two packets are swapped. */
  swapsAfterBreak = false
  /** Names of its captures, each of which contains all packets. */
  captures: readonly string[] = [API_CAPTURE]
  /** It refuses all downloads so. */
  refusal: { readonly status: number; readonly text: string | Buffer } | undefined
  /** Targets of all downloads that it was asked for. */
  readonly asked: string[] = []
  refused = 0
  /** Bytes that followed the ends of endless answers. */
  endlessBytes = 0
  running = 0
  mostRunning = 0
  #behaviour: ApiBehaviour = {}
  readonly #server: Server
  readonly #changes = new NotedChanges()

  private constructor(name: string, records: readonly PcapRecord[]) {
    this.name = name
    this.records = records
    this.#server = createServer((req, res) => void this.#answer(req, res))
  }

  /** With the packets, or so many of its own. */
  static async start(
    name: string,
    packets: number | readonly PcapRecord[],
    behaviour: ApiBehaviour = {},
  ): Promise<ApiDevice> {
    const device = new ApiDevice(name, typeof packets === 'number' ? ownPackets(name, packets) : packets)
    device.#behaviour = behaviour
    device.#server.listen(0, OWN_LOOPBACK)
    await once(device.#server, 'listening')
    return device
  }

  get behaviour(): ApiBehaviour {
    return this.#behaviour
  }

  set behaviour(behaviour: ApiBehaviour) {
    this.#behaviour = behaviour
    this.#changes.note()
  }

  get config() {
    const url = `http://${OWN_LOOPBACK}:${(this.#server.address() as AddressInfo).port}`
    return { name: this.name, url, user: 'gateway', password: { env: 'FAKE_DEVICE_PASSWORD' } }
  }

  /** Resolves when the condition holds; checked whenever a stream begins, ends or is refused. */
  async until(condition: () => boolean): Promise<void> {
    await this.#changes.until(condition)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.on('error', () => undefined)
    const [pathname = '', query = ''] = (req.url ?? '').split('?')
    const { missing, pageAt, isOldHttp, wantsLogin, redirects } = this.behaviour
    if (isOldHttp === true) speakOldHttp(res)
    const { version = '7.1' } = this.behaviour
    const answers: Record<string, string> = {
      '/api/v1/system/version': JSON.stringify({ version, device: 'PX100', build: 'Tue Jan 6' }),
      '/api/v1/system/time_current': `${BigInt(Date.now()) * 1_000_000n}`,
      '/sysmaster/capture_status': JSON.stringify({ Status: 'ok' }),
      '/stream/list': this.#list(),
    }
    const isDownload = /^(\/api\/v1)?\/pcap\/(single|timerange|splittime)$/.test(pathname)
    if (wantsLogin !== undefined) res.writeHead(401, { 'WWW-Authenticate': wantsLogin }).end('no\n')
    else if (redirects === true) res.writeHead(302, { Location: `http://${OWN_LOOPBACK}:1${req.url}` }).end()
    else if (missing?.test(pathname)) res.writeHead(404).end('not found\n')
    else if (pathname === pageAt) res.end('<html><h1>PX100</h1></html>')
    else if (req.method !== 'GET') res.writeHead(405).end()
    else if (isDownload) await this.#download(req.url ?? '', res, decodedPairs(query))
    else if (answers[pathname] === undefined) res.writeHead(404).end('not found\n')
    else res.end(answers[pathname])
  }

  #list(): string {
    const { list } = this.behaviour
    if (list === 'null') return '{"List":null}'
    const time = (ns: bigint) => (list === 'numbers' ? String(ns) : `"${ns}"`)
    const last = this.records.at(-1)?.ns ?? API_BEGIN_NS
    const entries = this.captures.map(
      (name) =>
        `{"StreamName":${JSON.stringify(name)},"StartTS":${time(API_BEGIN_NS)},"EndTS":${time(last)},` +
        `"PCAP":"/pcap/single?StreamName=${encodeURIComponent(name)}"}`,
    )
    return list === 'array' ? `[${entries.join()}]` : `{"List":[${entries.join()}]}`
  }

  async #download(target: string, res: ServerResponse, query: Pairs): Promise<void> {
    const { streamsMax = 4, limit = '503' } = this.behaviour
    this.asked.push(target)
    await this.behaviour.search?.(target)
    if (res.closed) return
    const name = query.get('StreamName')
    if (name !== null && !this.captures.includes(name))
      return void res.writeHead(404).end(`no such capture ${name}\n`)
    const { refusal } = this
    if (refusal !== undefined) return void res.writeHead(refusal.status).end(refusal.text)
    if (this.running >= streamsMax) {
      if (limit !== 'wait') return await this.#refuse(res, limit)
      this.refused += 1
      this.#changes.note()
      await this.until(() => this.running < streamsMax)
    }
    if (this.behaviour.refusesEmpty === true && query.get('FilterBPF') === 'less 0')
      return void res.writeHead(400).end('expression rejects all packets\n')
    this.running += 1
    this.mostRunning = Math.max(this.mostRunning, this.running)
    this.#changes.note()
    await this.behaviour.scan?.(target)
    if (res.closed) return await this.#free()
    res.once('close', () => void this.#free())
    const zeros = Buffer.alloc(this.behaviour.zeros ?? 0)
    const file = Buffer.concat([this.#chosen(target, query), zeros])
    const isPacked = this.behaviour.compresses === true && query.get('Compression') !== null
    const { endless } = this.behaviour
    if (endless !== undefined && query.get('FilterBPF')?.includes('host') === true)
      return await this.#sendForEver(res, file, endless)
    await this.#send(res, isPacked ? gzipSync(file) : file)
  }

  async #sendForEver(res: ServerResponse, file: Buffer, what: 'packets' | 'bytes'): Promise<void> {
    const last = makeRecord(this.records.at(-1) as PcapRecord)
    const closed = once(res, 'close').then(() => false)
    const write = (bytes: Buffer) =>
      Promise.race([
        closed,
        new Promise<boolean>((resolve) =>
          res.write(bytes, (error) => resolve(error === null || error === undefined)),
        ),
      ])
    const isOfPackets = what === 'packets'
    const begun = isOfPackets ? NOTHING : last.subarray(0, RECORD_HEADER_BYTES)
    const rest = isOfPackets ? Buffer.concat(Array.from({ length: 100 }, () => last)) : Buffer.alloc(1)
    await write(Buffer.concat([file, begun]))
    while (await write(rest)) {
      this.endlessBytes += rest.length
      this.#changes.note()
      if (!isOfPackets) await pause(10, 'it sends a byte now and then')
    }
  }

  async #free(): Promise<void> {
    const { refused } = this
    const isFree = () => this.behaviour.isFreedLate !== true || this.refused > refused
    if (!isFree()) await this.until(isFree)
    this.running -= 1
    this.#changes.note()
  }

  async #refuse(res: ServerResponse, limit: Exclude<LimitStyle, 'wait'>): Promise<void> {
    this.refused += 1
    this.#changes.note()
    await this.behaviour.refusalHeld
    if (limit === '503') res.writeHead(503).end('too many streams\n')
    else if (limit === '503 with Retry-After') res.writeHead(503, { 'Retry-After': '1' }).end('busy\n')
    else if (limit === '429') res.writeHead(429).end('too many streams\n')
    else if (limit === 'text') res.end('Error: too many streams\n')
    else if (limit === 'nothing') res.end()
    else res.socket?.resetAndDestroy()
  }

  /**
   * FilterBPF "odd" leaves the packets of odd numbers, "less 0" none; it knows no other BPF filter. Of the fields of FilterFrame
   * its packets have a capture port. Below /pcap/timerange it knows no filter.
   */
  #chosen(target: string, query: Pairs): Buffer {
    const isLegacyRange = target.startsWith('/pcap/timerange')
    const [begin, end] = [query.get('TSBegin') ?? query.get('Start'), query.get('TSEnd') ?? query.get('Stop')]
    const isLocal = query.get('TSUnit') === 'YYYYMMDD_HHMMSS'
    const { ignores = [] } = this.behaviour
    const filterOf = (name: 'FilterBPF' | 'FilterFrame') =>
      isLegacyRange || ignores.includes(name) ? null : query.get(name)
    const filter = filterOf('FilterBPF')
    const frames = heededOf(parseFrameFilter(filterOf('FilterFrame') ?? ''), this.behaviour.frames)
    const tsMax = target.includes('/timerange') ? BigInt(query.get('TSMax') ?? '1000000000000000') : null
    const slice = ignores.includes('Slice') ? 65_535 : Number(query.get('Slice') ?? 65_535)
    const records = this.behaviour.order?.(this.records) ?? this.records
    // It ends with the first packet that is too late.
    const tooLate = tsMax === null ? -1 : records.findIndex(({ ns }) => ns >= API_BEGIN_NS + tsMax)
    const [first, second, ...rest] = tooLate === -1 ? records : records.slice(0, tooLate)
    const isSwapped =
      this.swapsAfterBreak && this.breaksLeft === 0 && first !== undefined && second !== undefined
    return makePcap(
      (isSwapped ? [second, first, ...rest] : records.slice(0, tooLate === -1 ? undefined : tooLate))
        .filter(({ ns }, index) => {
          if (filter === 'less 0' || !frames.every((condition) => isMet(condition, apiPort(ns)))) return false
          if (filter?.includes('odd') && index % 2 === 0) return false
          if (filter !== null && !this.#passesInTunnel(filter, query, index % 2 === 1)) return false
          return isLocal || begin === null || end === null || this.#isInRange(ns, BigInt(begin), BigInt(end))
        })
        .map((record) => ({ ...record, captured: record.captured.subarray(0, slice) })),
      { nanoseconds: this.behaviour.isCoarse !== true, isBigEndian: this.behaviour.isBigEndian === true },
    )
  }

  /** Of the words of the filter, one is enough. */
  #passesInTunnel(filter: string, query: Pairs, isInTunnel: boolean): boolean {
    const isOfTunnel = filter.includes('udp port 4789')
    const isOfInner = filter === 'inner'
    if (!isOfTunnel && !isOfInner) return true
    const { tunnels } = this.behaviour
    if (tunnels === undefined || !isInTunnel) return false
    const looksInside = query.get('FilterBPFDecap') === 'true' && tunnels === 'looks inside'
    return isOfInner === looksInside
  }

  #isInRange(ns: bigint, beginNs: bigint, endNs: bigint): boolean {
    const { ranges } = this.behaviour
    if (ranges === 'inclusive') return ns >= beginNs && ns <= endNs
    if (ranges === undefined) return ns >= beginNs && ns < endNs
    if (ranges === 'earlier') return ns - 300n >= beginNs && ns - 300n < endNs
    const second = (timeNs: bigint) => timeNs - (timeNs % NS_PER_S)
    const lastNs = second(ranges === 'seconds' ? endNs + NS_PER_S - 1n : endNs)
    return ns >= second(beginNs) && ns < lastNs
  }

  async #send(res: ServerResponse, whole: Buffer): Promise<void> {
    const { held, endsByClose, isChunked } = this.behaviour
    const records = Math.floor((whole.length - PCAP_HEADER_BYTES) / API_RECORD_BYTES)
    const halfBytes = PCAP_HEADER_BYTES + Math.floor(records / 2) * API_RECORD_BYTES
    if (this.behaviour.isDamaged === true && records > 0) whole.writeUInt32LE(0x7fff_fff0, halfBytes + 8)
    const body = endsByClose === 'half' ? whole.subarray(0, halfBytes) : whole
    const cut = this.#nextBreak(body)
    if (endsByClose !== undefined) res.useChunkedEncodingByDefault = false
    res.writeHead(200, {
      'Content-Type': 'application/octet-stream',
      ...(endsByClose === undefined ? {} : { Connection: 'close' }),
      ...(endsByClose === undefined && isChunked !== true ? { 'Content-Length': body.length } : {}),
    })
    const first = cut?.afterBytes ?? Math.floor(body.length / 2)
    await new Promise<void>((resolve) => res.write(body.subarray(0, first), () => resolve()))
    if (cut?.by === 'reset') return res.socket?.resetAndDestroy() && undefined
    if (cut?.by === 'close') return res.socket?.end() && undefined
    await held
    res.end(body.subarray(first))
  }

  #nextBreak(body: Buffer): StreamBreak | undefined {
    if (this.breaksLeft === 0) return this.breaks.shift()
    this.breaksLeft -= 1
    return { afterBytes: Math.floor(body.length / 2), by: 'reset' }
  }
}

function ownPackets(name: string, count: number): readonly PcapRecord[] {
  return Array.from({ length: count }, (_, index) =>
    makePacket(
      API_BEGIN_NS + BigInt(index) * API_STEP_NS,
      `${name} packet ${index}`.padEnd(CAPTURED_BYTES, '.'),
    ),
  )
}

/** The capture port of the packet of this time. */
export function apiPort(ns: bigint): number {
  return Number(((ns - API_BEGIN_NS) / API_STEP_NS) % 4n)
}

function heededOf(
  conditions: readonly FrameCondition[],
  heeds: ApiBehaviour['frames'] = 'all',
): readonly FrameCondition[] {
  if (heeds === 'first') return conditions.slice(0, 1)
  if (heeds === 'equal') return conditions.filter(({ op }) => op === '==')
  return conditions.filter(({ field }) => heeds === 'all' || field === 'capture.port')
}

function isMet({ field, op, values }: FrameCondition, port: number): boolean {
  return (field === 'capture.port' && values.includes(port)) === (op === '==')
}

/** Each connection has one answer. */
function speakOldHttp(res: ServerResponse): void {
  const { socket } = res
  if (socket === null) return
  res.useChunkedEncodingByDefault = false
  res.shouldKeepAlive = false
  const write = socket.write.bind(socket) as (...given: readonly unknown[]) => boolean
  socket.write = (bytes: unknown, ...rest: readonly unknown[]) =>
    write(typeof bytes === 'string' ? bytes.replace('HTTP/1.1', 'HTTP/1.0') : bytes, ...rest)
}

interface Pairs {
  get(name: string): string | null
}

/** Decoded the manufacturer's way: "+" is not a space. */
function decodedPairs(query: string): Pairs {
  const pairs = query.split('&').map((pair) => pair.split('=').map(decodeURIComponent))
  return { get: (name) => pairs.find(([key]) => key === name)?.[1] ?? null }
}
