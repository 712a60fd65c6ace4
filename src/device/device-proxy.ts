/**
 * Passes a control call through to a device: one that changes something there (it is never sent twice),
 * one whose answer goes on until the caller leaves (events, telemetry), and any that we do not know.
 * What only reads and ends goes the short way of passRead(). http-proxy makes the request; the answer
 * is piped here, because http-proxy alone leaves the device connection open when the client leaves and
 * the client hanging when the device dies.
 */
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { createRequire } from 'node:module'
import type { Readable } from 'node:stream'
import { urlToHttpOptions } from 'node:url'
import util from 'node:util'
import type HttpProxy from 'http-proxy'
import type { Device } from './device.ts'
import { type PassedCall, passHead } from './passed-call.ts'
import { ProxiedCall } from './proxied-call.ts'

export interface DeviceProxyLimits {
  /** A device that sends nothing for so long has failed. */
  readonly timeoutMs: number
}

export class DeviceProxy {
  readonly #timeoutMs: number
  readonly #proxies = new WeakMap<Device, HttpProxy>()

  constructor(limits: DeviceProxyLimits) {
    this.#timeoutMs = limits.timeoutMs
  }

  /**
   * Answers `res` with what the device says. Resolves when the answer has ended or been cut. Before the
   * first byte it fails with device-unreachable, device-timeout, device-protocol or device-rejected.
   * REQUIRES: the request has no body.
   */
  async forward(device: Device, call: PassedCall, req: IncomingMessage, res: ServerResponse): Promise<void> {
    const proxied = new ProxiedCall(device, call, req, res)
    this.#proxyOf(device).web(proxied.asRequest, res)
    const answer = await proxied.answer
    try {
      passHead(device, answer.statusCode ?? 0, answer.headers, res)
    } catch (error) {
      answer.destroy()
      throw error
    }
    await pipeBody(answer, res)
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
    // What http-proxy says instead when the caller has left as well.
    proxy.on('econnreset', (error, call) => ProxiedCall.of(call).failed(error))
    this.#proxies.set(device, proxy)
    return proxy
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

/** Resolves when the answer has been sent or been cut. */
function pipeBody(answer: IncomingMessage, res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    res.once('close', resolve)
    if (res.closed) resolve()
    // A small body has come with its head; to pipe it would cost more than the rest of passing it on.
    if (answer.complete) {
      res.end(answer.read())
      return
    }
    // A body that the device broke off has no clean end here either.
    answer.once('close', () => {
      if (!answer.complete) res.destroy()
    })
    if (answer.destroyed) res.destroy()
    answer.pipe(res)
  })
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
