/**
 * Passes a control call through to a device: everything below /devices/{device}/ that is no
 * download. http-proxy makes the request; the answer is piped here, because http-proxy alone leaves
 * the device connection open when the client leaves and the client hanging when the device dies.
 */
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { createRequire } from 'node:module'
import type { Readable } from 'node:stream'
import { urlToHttpOptions } from 'node:url'
import util from 'node:util'
import type HttpProxy from 'http-proxy'
import { CapfleetError } from '../base/error.ts'
import type { Device } from './device.ts'
import { deviceFailure, deviceProtocol, deviceRefusal } from './device-failure.ts'

export interface DeviceProxyLimits {
  /** A device that sends nothing for so long has failed. */
  readonly timeoutMs: number
}

/** What a device needs to know of the caller's request. Credentials and cookies are not among it. */
const REQUEST_HEADERS = [
  'accept',
  'accept-language',
  'if-none-match',
  'if-modified-since',
  'last-event-id',
  'range',
]
/** What a caller needs of the device's answer. */
const RESPONSE_HEADERS = [
  'accept-ranges',
  'allow',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'last-modified',
  'retry-after',
  'x-accel-buffering',
]
/** Answers that go on until the caller leaves: events and telemetry. */
const LIVE_TYPES = /^(text\/event-stream|application\/x-ndjson)\b/
/** Their devices say something at least every 30 s. */
const LIVE_SILENCE_MS = 45_000

export class DeviceProxy {
  readonly #timeoutMs: number
  readonly #proxies = new WeakMap<Device, HttpProxy>()
  /** What waits for the device's answer to be passed to the key. */
  readonly #waiting = new WeakMap<ServerResponse, (answer: IncomingMessage) => void>()

  constructor(limits: DeviceProxyLimits) {
    this.#timeoutMs = limits.timeoutMs
  }

  /**
   * Answers `res` with what the device says to `target` (path and query). Resolves when the answer
   * has ended or been cut. Before the first byte it fails with device-unreachable, device-timeout,
   * device-protocol or device-rejected. REQUIRES: the request has no body.
   */
  async forward(device: Device, target: string, req: IncomingMessage, res: ServerResponse): Promise<void> {
    const answer = await this.#ask(device, target, req, res)
    const status = answer.statusCode ?? 0
    if (status === 401 || status === 403) {
      answer.destroy()
      throw deviceRefusal(device.name, status, '')
    }
    if (status < 200 || (status >= 300 && status < 400 && status !== 304)) {
      answer.destroy()
      throw deviceProtocol(device.name, `answered with status ${status}; redirects are not followed`)
    }
    for (const name of RESPONSE_HEADERS) {
      const value = answer.headers[name]
      if (value !== undefined) res.setHeader(name, value)
    }
    res.statusCode = status
    await passBody(answer, res)
  }

  #ask(device: Device, target: string, req: IncomingMessage, res: ServerResponse): Promise<IncomingMessage> {
    const proxy = this.#proxyOf(device)
    const replaced = {
      url: device.pathOf(target),
      headers: headersFor(device, req),
      // The API of the devices knows no other method for what POST and DELETE mean here.
      method: req.method === 'HEAD' ? 'HEAD' : 'GET',
    }
    return new Promise((resolve, reject) => {
      this.#waiting.set(res, resolve)
      const fail = (error: Error) => reject(deviceFailure(device.name, error))
      withOriginal(req, replaced, () => proxy.web(req, res, undefined, fail))
    })
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
    proxy.on('proxyReq', (proxyReq, _, res) => this.#follow(proxyReq, device, res))
    this.#proxies.set(device, proxy)
    return proxy
  }

  #follow(proxyReq: ClientRequest, device: Device, res: ServerResponse): void {
    // http-proxy's own limit says nothing of a time-out in its error.
    let limitMs = this.#timeoutMs
    proxyReq.once('timeout', () => proxyReq.destroy(tooSlow(device, limitMs)))
    // Of no effect when all of the answer is here.
    res.once('close', () => proxyReq.destroy())
    if (res.closed) proxyReq.destroy()
    proxyReq.once('response', (answer) => {
      // 'close' tells all that matters.
      answer.on('error', () => undefined)
      if (LIVE_TYPES.test(answer.headers['content-type'] ?? '')) {
        limitMs = Math.max(limitMs, LIVE_SILENCE_MS)
        proxyReq.setTimeout(limitMs)
      }
      this.#waiting.get(res)?.(answer)
    })
  }
}

/** Taken apart once; http-proxy would parse an address again for every call. */
function targetOf({ url }: Device): { host: string; hostname: string; port: number; protocol: string } {
  const { hostname, port } = urlToHttpOptions(url)
  return { host: url.host, hostname: hostname ?? '', port: Number(port ?? 0), protocol: url.protocol }
}

/** Without an agent http-proxy opens a connection for every call. Idle connections hold nothing up. */
function agentFor(device: Device, timeoutMs: number): HttpAgent {
  const options = { ...device.connectOptions, keepAlive: true, timeout: timeoutMs }
  return device.url.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options)
}

/** For http-proxy, which would pipe the request's body, though there is none. */
const NO_BODY = { pipe: (request: ClientRequest) => request.end() } as unknown as Readable

/**
 * Resolves when the answer has been sent or been cut. stream.pipeline() would do the same; for these
 * small bodies it costs more than the body.
 */
function passBody(answer: IncomingMessage, res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    res.once('close', resolve)
    if (res.closed) resolve()
    // A body that the device broke off has no clean end here either.
    answer.once('close', () => {
      if (!answer.complete) res.destroy()
    })
    if (answer.destroyed) res.destroy()
    answer.pipe(res)
  })
}

function tooSlow({ name }: Device, limitMs: number): CapfleetError {
  return new CapfleetError('device-timeout', `device ${name} sent nothing for ${limitMs / 1_000} s`, {
    members: { devices: [name] },
  })
}

function headersFor(device: Device, req: IncomingMessage): IncomingMessage['headers'] {
  const headers: IncomingMessage['headers'] = { authorization: device.authorization() }
  for (const name of REQUEST_HEADERS) if (req.headers[name] !== undefined) headers[name] = req.headers[name]
  return headers
}

/** http-proxy copies these of the request while `send` runs; nobody else may see ours. */
function withOriginal(
  req: IncomingMessage,
  replaced: Required<Pick<IncomingMessage, 'url' | 'headers' | 'method'>>,
  send: () => void,
): void {
  const original = { url: req.url, headers: req.headers, method: req.method }
  Object.assign(req, replaced)
  try {
    send()
  } finally {
    Object.assign(req, original)
  }
}

/**
 * http-proxy takes util._extend when it is loaded, and every use of that prints a deprecation warning
 * (DEP0060). It gets Object.assign instead; util is as before when this returns.
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
