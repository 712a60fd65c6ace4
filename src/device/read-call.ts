import type { IncomingMessage, ServerResponse } from 'node:http'
import { CapfleetError, clientGone } from '../base/error.ts'
import { type BodyFraming, framingFor } from './body-framing.ts'
import type { Device } from './device.ts'
import { deviceBrokeOff, deviceFailure, deviceHeadLate, deviceProtocol } from './device-failure.ts'
import { HeadCollector } from './head-collector.ts'
import type { AnswerReader, KeptConnection } from './kept-connection.ts'
import type { KeptConnections } from './kept-connections.ts'
import { passHead, requestHeaders } from './passed-headers.ts'
import { MalformedAnswer, type ResponseHead } from './response-head.ts'

/** One call of DeviceReads: asks when it is made, and passes the answer on as it comes. */
export class ReadCall implements AnswerReader {
  /** As DeviceReads.forward. */
  readonly done: Promise<void>
  readonly #connections: KeptConnections
  readonly #device: Device
  readonly #res: ServerResponse
  readonly #request: string
  readonly #isHead: boolean
  readonly #settle = Promise.withResolvers<void>()
  readonly #headCollector = new HeadCollector()
  /** One limit for the whole head: a device that sends a byte of it from time to time is never silent. */
  readonly #late: NodeJS.Timeout
  #connection: KeptConnection | undefined
  #hasBytes = false
  /** After the head. */
  #framing: BodyFraming | undefined
  #isKept = false

  constructor(
    connections: KeptConnections,
    device: Device,
    target: string,
    req: IncomingMessage,
    res: ServerResponse,
  ) {
    this.done = this.#settle.promise
    this.#connections = connections
    this.#device = device
    this.#res = res
    this.#isHead = req.method === 'HEAD'
    this.#request = formatRequest(device, target, req)
    const { timeoutMs } = connections
    this.#late = setTimeout(() => this.#fail(deviceHeadLate(device.name, timeoutMs)), timeoutMs)
    if (res.closed) {
      this.#fail(clientGone())
      return
    }
    res.on('close', () => {
      if (this.#connection !== undefined) this.#fail(clientGone())
    })
    this.#ask(connections.take())
  }

  read(bytes: Buffer): boolean {
    this.#hasBytes = true
    try {
      return this.#pass(bytes)
    } catch (error) {
      this.#fail(error instanceof MalformedAnswer ? deviceProtocol(this.#device.name, error.message) : error)
      return false
    }
  }

  lost(error: Error | undefined): void {
    if (this.#mayAskAgain(error)) this.#ask(this.#connections.open())
    else if (error === undefined && this.#framing?.closed()) this.#end([])
    else {
      this.#fail(
        error === undefined ? deviceBrokeOff(this.#device.name) : deviceFailure(this.#device.name, error),
      )
    }
  }

  #ask(connection: KeptConnection): void {
    this.#connection = connection
    connection.begin(this.#request, this)
  }

  /** The device may close a kept connection at any time; a time-out says more than that. */
  #mayAskAgain(error: Error | undefined): boolean {
    return this.#connection?.wasUsed === true && !this.#hasBytes && !(error instanceof CapfleetError)
  }

  /** Returns whether more may follow at once. */
  #pass(bytes: Buffer): boolean {
    const body = this.#framing === undefined ? this.#passHead(bytes) : bytes
    const framing = this.#framing
    if (framing === undefined) return true
    const { data } = framing.walk(body)
    if (framing.ended) {
      this.#end(data)
      return true
    }
    if (framing.fault !== undefined) throw framing.fault
    let isFlowing = true
    for (const piece of data) isFlowing = this.#res.write(Buffer.from(piece))
    if (!isFlowing) this.#res.once('drain', () => this.#connection?.resume())
    return isFlowing
  }

  /** Returns what follows the head. */
  #passHead(bytes: Buffer): Buffer {
    const found = this.#headCollector.take(bytes)
    if (found === undefined) return bytes
    const { head, bodyFrom } = found
    clearTimeout(this.#late)
    passHead(this.#device, head.status, head.headers, this.#res)
    this.#framing = framingFor(this.#isHead || !hasBody(head.status) ? 0 : head.framing)
    this.#isKept = isKept(head)
    return bytes.subarray(bodyFrom)
  }

  #end(data: readonly Buffer[]): void {
    const connection = this.#connection
    this.#connection = undefined
    if (connection !== undefined && this.#isKept && this.#framing?.fault === undefined)
      this.#connections.keep(connection)
    else connection?.destroy()
    // A text goes out in one write with the head.
    this.#res.end(data.map((piece) => piece.toString('latin1')).join(''), 'latin1')
    this.#settle.resolve()
  }

  /** After the head no status is possible any more; the client must not see a clean end. */
  #fail(reason: unknown): void {
    clearTimeout(this.#late)
    this.#connection?.destroy()
    this.#connection = undefined
    if (this.#framing === undefined) this.#settle.reject(reason)
    else {
      this.#res.destroy()
      this.#settle.resolve()
    }
  }
}

function formatRequest(device: Device, target: string, req: IncomingMessage): string {
  const path = device.pathOf(target)
  // Node takes a few more characters; this is the last wall against a split request.
  if (!/^\/[\x21-\x7e\x80-\xff]*$/.test(path))
    throw new CapfleetError('bad-parameter', 'the address holds a character that must be percent-encoded')
  // The API of the devices knows no other method that reads.
  let text = `${req.method === 'HEAD' ? 'HEAD' : 'GET'} ${path} HTTP/1.1\r\nhost: ${device.url.host}\r\n`
  for (const [name, value] of Object.entries(requestHeaders(device, req))) text += `${name}: ${value}\r\n`
  return `${text}\r\n`
}

/** Whether the connection can carry another exchange. */
function isKept({ status, isHttp11, headers, framing }: ResponseHead): boolean {
  if (!isHttp11 || /\bclose\b/i.test(headers.connection ?? '')) return false
  // Who announces a body for an answer that has none might send it as well.
  return hasBody(status) || framing === 'until-close' || framing === 0
}

function hasBody(status: number): boolean {
  return status !== 204 && status !== 304
}
