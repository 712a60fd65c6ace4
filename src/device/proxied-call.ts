/**
 * One control call as http-proxy sees it: what it makes the device's request from, and what becomes of
 * that request. An object of its own, because http-proxy knows the caller's request only as a whole.
 */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { clientGone } from '../base/error.ts'
import type { Device } from './device.ts'
import { deviceBrokeOff, deviceFailure, deviceLate, deviceProtocol } from './device-failure.ts'
import { methodOf, type PassedCall, requestHeaders } from './passed-call.ts'
import { HEAD_BYTES_MAX } from './response-head.ts'

/** Answers that go on until the caller leaves: events and telemetry. */
const LIVE_TYPES = /^(text\/event-stream|application\/x-ndjson)\b/
/** Their devices say something at least every 30 s. */
const LIVE_SILENCE_MS = 45_000

export class ProxiedCall {
  readonly url: string
  readonly method: 'HEAD' | 'GET'
  readonly headers: Readonly<IncomingMessage['headers']>
  readonly socket: IncomingMessage['socket']
  /**
   * The head of the device's answer. Fails with device-unreachable, device-timeout, device-protocol,
   * or draining when the caller leaves first.
   */
  readonly answer: Promise<IncomingMessage>
  readonly #device: Device
  readonly #res: ServerResponse
  readonly #settle: PromiseWithResolvers<IncomingMessage>
  #request: ClientRequest | undefined
  /** How long the device may be silent. */
  #limitMs = 0
  #late: NodeJS.Timeout | undefined

  /** The object that http-proxy was given as the request. */
  static of(request: IncomingMessage): ProxiedCall {
    return request as unknown as ProxiedCall
  }

  constructor(device: Device, { target, caller }: PassedCall, req: IncomingMessage, res: ServerResponse) {
    this.url = device.pathOf(target)
    this.method = methodOf(req)
    this.headers = { authorization: device.authorization(), ...requestHeaders(req, caller) }
    this.socket = req.socket
    this.#settle = Promise.withResolvers()
    this.answer = this.#settle.promise
    this.#device = device
    this.#res = res
  }

  get asRequest(): IncomingMessage {
    return this as unknown as IncomingMessage
  }

  /** http-proxy would listen for a caller that leaves; the response tells that more reliably. */
  on(): this {
    return this
  }

  /** The device's request has a connection. */
  sent(request: ClientRequest, timeoutMs: number): void {
    this.#request = request
    this.#limitMs = timeoutMs
    // On a used connection Node may have left what the device said of idle ones (Keep-Alive: timeout).
    if (request.socket?.timeout !== timeoutMs) request.socket?.setTimeout(timeoutMs)
    // http-proxy's own limit says nothing of a time-out in its error.
    request.once('timeout', () =>
      request.destroy(deviceLate(this.#device.name, 'send anything', this.#limitMs)),
    )
    this.#boundHead(request, timeoutMs)
    const leave = () => {
      // Of no effect when all of the answer is here.
      if (!request.destroyed) request.destroy(clientGone())
    }
    this.#res.once('close', leave)
    if (this.#res.closed) leave()
  }

  answered(answer: IncomingMessage): void {
    clearTimeout(this.#late)
    // 'close' tells all that matters.
    answer.on('error', () => undefined)
    if (LIVE_TYPES.test(answer.headers['content-type'] ?? '')) {
      this.#limitMs = Math.max(this.#limitMs, LIVE_SILENCE_MS)
      this.#request?.setTimeout(this.#limitMs)
    }
    this.#settle.resolve(answer)
  }

  /** Of no effect after `answered`. */
  failed(error: Error): void {
    clearTimeout(this.#late)
    this.#settle.reject(deviceFailure(this.#device.name, error))
  }

  /**
   * One limit in time and bytes for all that comes before the final answer. Node goes on for ever with
   * interim answers (1xx), and ends a request whose device switches protocols (101) without a word.
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
      this.failed(deviceProtocol(name, 'switched protocols unasked'))
    })
    // Whatever else ends the request without an answer.
    request.once('close', () => this.failed(deviceBrokeOff(name)))
  }
}

/** "HTTP/1.1 102" */
const STATUS_LINE_BYTES = 12
