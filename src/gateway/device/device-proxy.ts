/**
 * Forwards a control call to a device: one that changes something there (never sent twice), one whose answer continues
 * until the caller leaves (events, telemetry), and any unknown one. Calls that only read and end take the shorter path
 * of passRead(). http-proxy makes the request; the answer is piped here, because http-proxy alone leaves the device
 * connection open when the client leaves, and the client hanging when the device dies.
 */
import { addAbortListener } from 'node:events'
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { createRequire } from 'node:module'
import type { Readable } from 'node:stream'
import { urlToHttpOptions } from 'node:url'
import util from 'node:util'
import type HttpProxy from 'http-proxy'
import { clientGone } from '../../shared/base/error.ts'
import type { Device } from './device.ts'
import { deviceBrokeOff, deviceFailure, deviceLate, deviceProtocol } from './device-failure.ts'
import { currentTraceHeaders } from './device-request.ts'
import { type BodyForm, QueryEmptier } from './emptied-queries.ts'
import { methodOf, type PassedCall, passHead, requestHeaders } from './passed-call.ts'
import { HEAD_BYTES_MAX } from './response-head.ts'

export interface DeviceProxyOptions {
  /** A device that sends nothing for this long has failed. */
  readonly timeoutMs: number
  /** Ends answers that would continue until the caller leaves; their caller sees a clean end. */
  readonly ending: AbortSignal
}

export class DeviceProxy {
  readonly #timeoutMs: number
  readonly #ending: AbortSignal
  readonly #proxies = new WeakMap<Device, HttpProxy>()

  constructor({ timeoutMs, ending }: DeviceProxyOptions) {
    this.#timeoutMs = timeoutMs
    this.#ending = ending
  }

  /**
   * Answers `res` with the device's answer. Resolves when the answer has ended or been cut off. Before the first byte
   * it fails with device-unreachable, device-timeout, device-protocol or device-rejected. REQUIRES: the request has no
   * body.
   */
  async forward(device: Device, call: PassedCall, req: IncomingMessage, res: ServerResponse): Promise<void> {
    const proxied = new ProxiedCall(device, call, req, res)
    this.#proxyOf(device).web(proxied.asRequest, res)
    const answer = await proxied.answer
    try {
      const { statusCode: status = 0, headers } = answer
      passHead(device, { status, headers, emptiesQueries: call.emptiesQueries }, res)
    } catch (error) {
      answer.destroy()
      throw error
    }
    const body = call.emptiesQueries === true ? emptied(answer, res) : answer
    using _ending = endLive(answer, body, res, this.#ending)
    await pipeBody(answer, body, res)
  }

  #proxyOf(device: Device): HttpProxy {
    const kept = this.#proxies.get(device)
    if (kept !== undefined) return kept
    const proxy = HTTP_PROXY.createProxyServer({
      target: targetOf(device),
      prependPath: false,
      agent: agentFor(device, this.#timeoutMs),
      toProxy: true,
      changeOrigin: true,
      selfHandleResponse: true,
      buffer: NO_BODY,
    })
    proxy.on('proxyReq', (request, call) => ProxiedCall.of(call).sent(request, this.#timeoutMs))
    proxy.on('proxyRes', (answer, call) => ProxiedCall.of(call).answered(answer))
    proxy.on('error', (error, call) => ProxiedCall.of(call).failed(error))
    // http-proxy emits this instead of "error" if the caller has left as well.
    proxy.on('econnreset', (error, call) => ProxiedCall.of(call).failed(error))
    this.#proxies.set(device, proxy)
    return proxy
  }
}

/** Parsed once; http-proxy would parse the address again for every call. */
function targetOf({ url }: Device): { host: string; hostname: string; port: number; protocol: string } {
  const { hostname, port } = urlToHttpOptions(url)
  return { host: url.host, hostname: hostname ?? '', port: Number(port ?? 0), protocol: url.protocol }
}

/** Without an agent http-proxy opens a connection for every call. Idle connections do not keep the process running. */
function agentFor(device: Device, timeoutMs: number): HttpAgent {
  const options = { ...device.connectOptions, keepAlive: true, timeout: timeoutMs }
  return device.url.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options)
}

/** For http-proxy, which would pipe the request's body although there is none. */
const NO_BODY = { pipe: (request: ClientRequest) => request.end() } as unknown as Readable

/** The answer with other users' queries removed. An answer that cannot be checked is cut off. */
function emptied(answer: IncomingMessage, res: ServerResponse): Readable {
  const body = new QueryEmptier(formOf(answer)).once('error', () => res.destroy())
  return answer.pipe(body)
}

function formOf({ headers }: IncomingMessage): BodyForm {
  const type = headers['content-type'] ?? ''
  if (!LIVE_TYPES.test(type)) return 'json'
  return type.startsWith('text/event-stream') ? 'events' : 'lines'
}

/** Resolves when the body of the answer has been sent or cut off. */
function pipeBody(answer: IncomingMessage, body: Readable, res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    res.once('close', resolve)
    if (res.closed) resolve()
    // A small body has arrived with its head; piping it would cost more than everything else here.
    if (answer.complete && body === answer) {
      res.end(answer.read())
      return
    }
    // If the device breaks off the body, the client must not see a clean end either.
    answer.once('close', () => {
      if (!answer.complete) res.destroy()
    })
    if (answer.destroyed) res.destroy()
    body.pipe(res)
  })
}

/** Ends a live answer when `ending` aborts. */
function endLive(
  answer: IncomingMessage,
  body: Readable,
  res: ServerResponse,
  ending: AbortSignal,
): Disposable | undefined {
  if (!LIVE_TYPES.test(answer.headers['content-type'] ?? '')) return undefined
  return addAbortListener(ending, () => {
    body.unpipe(res)
    // The device closing its side must not cut off an answer that is being ended.
    answer.removeAllListeners('close')
    res.end()
    answer.destroy()
  })
}

/** Answers that continue until the caller leaves: events and telemetry. */
const LIVE_TYPES = /^(text\/event-stream|application\/x-ndjson)\b/
/** Devices send something at least every 30 s on these. */
const LIVE_SILENCE_MS = 45_000

/**
 * One control call as http-proxy sees it: the source of the request to the device, and the outcome of that request. A
 * separate object, because http-proxy only accepts the caller's request as a whole.
 */
class ProxiedCall {
  readonly url: string
  readonly method: 'HEAD' | 'GET'
  readonly headers: Readonly<IncomingMessage['headers']>
  readonly socket: IncomingMessage['socket']
  /**
   * The head of the device's answer. Fails with device-unreachable, device-timeout, device-protocol, or with draining
   * if the caller leaves first.
   */
  readonly answer: Promise<IncomingMessage>
  readonly #device: Device
  readonly #res: ServerResponse
  readonly #settle: PromiseWithResolvers<IncomingMessage>
  #request: ClientRequest | undefined
  /** How long the device may be silent. */
  #limitMs = 0
  #late: NodeJS.Timeout | undefined

  /** Returns the call for the object that http-proxy was given as the request. */
  static of(request: IncomingMessage): ProxiedCall {
    return request as unknown as ProxiedCall
  }

  constructor(
    device: Device,
    { target, caller, emptiesQueries }: PassedCall,
    req: IncomingMessage,
    res: ServerResponse,
  ) {
    this.url = device.pathOf(target)
    this.method = methodOf(req)
    this.headers = {
      authorization: device.authorization(),
      ...requestHeaders(req, caller, emptiesQueries),
      ...currentTraceHeaders(),
    }
    this.socket = req.socket
    this.#settle = Promise.withResolvers()
    this.answer = this.#settle.promise
    this.#device = device
    this.#res = res
  }

  get asRequest(): IncomingMessage {
    return this as unknown as IncomingMessage
  }

  /** http-proxy would listen for the caller leaving; the response reports that more reliably. */
  on(): this {
    return this
  }

  /** Called when the request to the device has a socket. */
  sent(request: ClientRequest, timeoutMs: number): void {
    this.#request = request
    this.#limitMs = timeoutMs
    // On a reused connection Node may have kept the device's limit for idle connections (Keep-Alive: timeout).
    if (request.socket?.timeout !== timeoutMs) request.socket?.setTimeout(timeoutMs)
    // http-proxy's own limit does not report a time-out in its error.
    request.once('timeout', () =>
      request.destroy(deviceLate(this.#device.name, 'send anything', this.#limitMs)),
    )
    this.#boundHead(request, timeoutMs)
    const leave = () => {
      // Has no effect once the whole answer has arrived.
      if (!request.destroyed) request.destroy(clientGone())
    }
    this.#res.once('close', leave)
    if (this.#res.closed) leave()
  }

  answered(answer: IncomingMessage): void {
    clearTimeout(this.#late)
    // 'close' reports everything that matters.
    answer.on('error', () => undefined)
    if (LIVE_TYPES.test(answer.headers['content-type'] ?? '')) {
      this.#limitMs = Math.max(this.#limitMs, LIVE_SILENCE_MS)
      this.#request?.setTimeout(this.#limitMs)
    }
    this.#settle.resolve(answer)
  }

  /** Reports that the call failed; has no effect after answered(). */
  failed(error: Error): void {
    clearTimeout(this.#late)
    this.#settle.reject(deviceFailure(this.#device.name, error))
  }

  /**
   * Limits the time and bytes of everything before the final answer. Node accepts interim answers (1xx) without limit,
   * and silently ends a request whose device switches protocols (101).
   */
  #boundHead(request: ClientRequest, timeoutMs: number): void {
    const { name } = this.#device
    this.#late = setTimeout(() => request.destroy(deviceLate(name, 'begin to answer', timeoutMs)), timeoutMs)
    let interimBytes = 0
    request.on('information', ({ rawHeaders, statusMessage }) => {
      interimBytes += [statusMessage, ...rawHeaders].reduce(
        (sum, text) => sum + text.length + 2,
        STATUS_LINE_BYTES,
      )
      if (interimBytes > HEAD_BYTES_MAX)
        request.destroy(deviceProtocol(name, `sent more than ${HEAD_BYTES_MAX} bytes of headers`))
    })
    request.once('upgrade', (_answer, socket) => {
      socket.destroy()
      this.failed(deviceProtocol(name, 'switched protocols without being asked'))
    })
    // Covers any other end of the request without an answer.
    request.once('close', () => this.failed(deviceBrokeOff(name)))
  }
}

/** "HTTP/1.1 102" */
const STATUS_LINE_BYTES = 12

/**
 * http-proxy reads util._extend when it is loaded, and every use of that prints a deprecation warning (DEP0060). It
 * gets Object.assign instead; util is restored when this returns.
 */
function loadHttpProxy(): typeof HttpProxy {
  const target = util as unknown as { _extend: unknown }
  const original = Object.getOwnPropertyDescriptor(target, '_extend')
  Object.defineProperty(target, '_extend', { value: Object.assign, configurable: true, writable: true })
  try {
    return createRequire(import.meta.url)('http-proxy') as typeof HttpProxy
  } finally {
    if (original !== undefined) Object.defineProperty(target, '_extend', original)
  }
}

const HTTP_PROXY = loadHttpProxy()
