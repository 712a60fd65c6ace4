/**
 * Passes a control call through to a device: everything below /devices/{device}/ that is no
 * download. http-proxy makes the request; the answer is piped here, because http-proxy alone leaves
 * the device connection open when the client leaves and the client hanging when the device dies.
 */
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { createRequire } from 'node:module'
import { pipeline } from 'node:stream/promises'
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
const REQUEST_HEADERS = ['accept', 'accept-language', 'if-none-match', 'if-modified-since', 'range']
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
]

export class DeviceProxy {
  readonly #timeoutMs: number
  // Without an agent http-proxy opens a connection for every call. Idle connections hold nothing up.
  readonly #agents = new WeakMap<Device, HttpAgent>()

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
    // Destroys both sides when either fails: a body that the device broke off has no clean end here.
    await pipeline(answer, res).catch(() => res.destroy())
  }

  #agentOf(device: Device): HttpAgent {
    const kept = this.#agents.get(device)
    if (kept !== undefined) return kept
    const options = { ...device.connectOptions, keepAlive: true }
    const agent = device.url.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options)
    this.#agents.set(device, agent)
    return agent
  }

  #ask(device: Device, target: string, req: IncomingMessage, res: ServerResponse): Promise<IncomingMessage> {
    const proxy = HTTP_PROXY.createProxyServer({
      target: device.url.origin,
      agent: this.#agentOf(device),
      // The API of the devices knows no other method for what POST and DELETE mean here.
      method: req.method === 'HEAD' ? 'HEAD' : 'GET',
      toProxy: true,
      changeOrigin: true,
      selfHandleResponse: true,
    })
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => reject(deviceFailure(device.name, error))
      proxy.on('proxyReq', (proxyReq: ClientRequest) => {
        // http-proxy's own limit says nothing of a time-out in its error.
        proxyReq.setTimeout(this.#timeoutMs, () => proxyReq.destroy(tooSlow(device, this.#timeoutMs)))
        const leave = () => proxyReq.destroy()
        res.once('close', leave)
        proxyReq.once('response', () => res.off('close', leave))
      })
      proxy.on('proxyRes', (answer) => {
        answer.on('error', () => undefined)
        resolve(answer)
      })
      withOriginal(req, { url: device.pathOf(target), headers: headersFor(device, req) }, () =>
        proxy.web(req, res, {}, fail),
      )
    })
  }
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

/** http-proxy copies address and headers of the request while `send` runs; nobody else may see ours. */
function withOriginal(
  req: IncomingMessage,
  replaced: { readonly url: string; readonly headers: IncomingMessage['headers'] },
  send: () => void,
): void {
  const original = { url: req.url, headers: req.headers }
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
