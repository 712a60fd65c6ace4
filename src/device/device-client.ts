import { setImmediate as nextTurn } from 'node:timers/promises'
import { Agent } from 'undici'
import type { Device } from './device.ts'
import { NO_IDLE_TIMEOUT } from './device-connection.ts'
import { deviceFailure, deviceHeadLate, deviceProtocol } from './device-failure.ts'
import { parseDeviceJson } from './device-json.ts'
import { deviceRefusal, type RefusedAnswer } from './device-refusal.ts'
import { DeviceStream } from './device-stream.ts'
import { JsonList } from './json-list.ts'
import type { ReadSizeLimits } from './read-size.ts'
import { MalformedAnswer } from './response-head.ts'

export interface DeviceClientLimits {
  readonly connectTimeoutMs: number
  /**
   * A device that sends no byte of an answer for so long, while we read, has failed; so has one whose head
   * is not whole by then.
   */
  readonly idleTimeoutMs: number
  /** Told what a device said that callers are not told. */
  readonly onHiddenText?: ((text: string) => void) | undefined
}

/** How much of a list is taken. */
export interface ListLimits {
  readonly bytesMax: number
  readonly entriesMax: number
}

/** By name in lower case. */
type QuestionHeaders = Readonly<Record<string, string>>

export interface StreamOptions {
  /** Name of the lease under which the stream is opened. */
  readonly lease: string
  /** Label of whoever asked for the download. */
  readonly caller: string
  readonly readSize: ReadSizeLimits
  /** The device may send nothing for as long as it likes; only a dead one fails then. */
  readonly mayPause: boolean
  readonly signal: AbortSignal
}

/** An answer of a device whose body has not been read. Destroy the body, or read it to its end. */
export interface DeviceAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: AsyncIterable<Buffer> & { destroy(error?: Error): unknown }
  /** Filled when the body has ended. */
  readonly trailers: Readonly<Record<string, string>>
}

/**
 * For lists, estimates and calls to several devices. So many that a caller whose slow filters keep some
 * of them busy keeps nobody else waiting.
 */
const CONNECTIONS = 128
const HEADER_BYTES_MAX = 16_384
const PROBLEM_BYTES_MAX = 65_536
/** Status line and line ends of an interim answer, at least. */
const INTERIM_LINE_BYTES = 16
const READ_AHEAD_BYTES = 256 * 1024

/** HTTP to one device, under the gateway's own credentials. Nothing of a caller's request goes along. */
export class DeviceClient {
  readonly device: Device
  readonly #limits: DeviceClientLimits
  readonly #agent: Agent

  constructor(device: Device, limits: DeviceClientLimits) {
    this.device = device
    this.#limits = limits
    this.#agent = new Agent({
      connections: CONNECTIONS,
      pipelining: 1,
      allowH2: false,
      connect: { ...device.connectOptions, timeout: limits.connectTimeoutMs },
      headersTimeout: limits.idleTimeoutMs,
      bodyTimeout: limits.idleTimeoutMs,
      maxHeaderSize: HEADER_BYTES_MAX,
    })
  }

  /**
   * GETs `target` (path and query), with the headers of `question`. `signal` also ends the body. Fails
   * with device-unreachable, device-timeout, device-protocol, or the signal's reason. Redirects are not followed.
   */
  async get(target: string, signal: AbortSignal, question: QuestionHeaders = {}): Promise<DeviceAnswer> {
    const { device } = this
    using head = this.#boundHead()
    try {
      const answer = await this.#agent.request({
        origin: device.url.origin,
        path: device.pathOf(target),
        method: 'GET',
        headers: {
          ...question,
          authorization: device.authorization(),
          te: 'trailers',
          'user-agent': 'capfleet-gateway',
        },
        highWaterMark: READ_AHEAD_BYTES,
        signal: AbortSignal.any([signal, head.signal]),
        onInfo: head.onInfo,
      })
      // Whoever reads the body hears of its failure; without a reader it must not end the process.
      answer.body.on('error', () => undefined)
      return {
        status: answer.statusCode,
        headers: answer.headers,
        body: answer.body,
        trailers: answer.trailers,
      }
    } catch (error) {
      signal.throwIfAborted()
      head.signal.throwIfAborted()
      throw deviceFailure(device.name, error)
    }
  }

  /** The text of a 200 answer; fails like get, with what the device's problem says, and when it is longer than `bytesMax`. */
  async getText(target: string, bytesMax: number, signal: AbortSignal): Promise<string> {
    return this.#readText(await this.#getOk(target, signal), bytesMax)
  }

  /**
   * GETs a download over a connection of its own. The stream is the caller's to dispose; `signal`
   * ends it too. Fails like get, and with what the device says when its answer is not 200.
   */
  async openStream(target: string, options: StreamOptions): Promise<DeviceStream> {
    const { device } = this
    const { lease, caller, readSize, mayPause, signal } = options
    const limits = mayPause ? { ...this.#limits, idleTimeoutMs: NO_IDLE_TIMEOUT } : this.#limits
    const stream = await DeviceStream.open(device, { target, lease, caller }, { ...limits, readSize, signal })
    if (stream.head.status === 200) return stream
    try {
      const { status, headers } = stream.head
      throw this.#refusal({ status, retryAfter: headers['retry-after'], body: await readProblem(stream) })
    } finally {
      stream[Symbol.dispose]()
    }
  }

  /** The JSON body of a 200 answer; fails like getText, and with device-protocol. */
  async getJson(target: string, bytesMax: number, signal: AbortSignal): Promise<unknown> {
    return (await this.ask(target, bytesMax, signal, {})).json
  }

  /** As getJson, with a question in headers; tells the answer's headers too. */
  async ask(
    target: string,
    bytesMax: number,
    signal: AbortSignal,
    question: QuestionHeaders,
  ): Promise<Pick<DeviceAnswer, 'headers'> & { readonly json: unknown }> {
    const answer = await this.#getOk(target, signal, question)
    const text = await this.#readText(answer, bytesMax)
    return { headers: answer.headers, json: parseDeviceJson(this.device.name, text) }
  }

  /**
   * The list of a 200 answer, {..., "List":[{...}, ...]}, however long: gives the texts of its entries as
   * they come and returns the members beside them. Fails like getJson; also after some entries.
   */
  async *getList(
    target: string,
    { bytesMax, entriesMax }: ListLimits,
    signal: AbortSignal,
  ): AsyncGenerator<readonly string[], Readonly<Record<string, unknown>>> {
    const answer = await this.#getOk(target, signal)
    const list = new JsonList()
    let entries = 0
    try {
      for await (const bytes of this.#bounded(answer, bytesMax)) {
        const found = list.push(bytes)
        entries += found.length
        if (entries > entriesMax) throw new MalformedAnswer(`sent a list of more than ${entriesMax} entries`)
        yield found
        // Else a fast device would have all of it read in one go, and everybody would wait.
        await nextTurn()
      }
      return list.end()
    } catch (error) {
      throw error instanceof MalformedAnswer ? deviceProtocol(this.device.name, error.message) : error
    }
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  async #getOk(target: string, signal: AbortSignal, question?: QuestionHeaders): Promise<DeviceAnswer> {
    const answer = await this.get(target, signal, question)
    if (answer.status === 200) return answer
    const body = await this.#readText(answer, PROBLEM_BYTES_MAX).catch(() => '')
    const retryAfter = answer.headers['retry-after']
    throw this.#refusal({
      status: answer.status,
      retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
      body,
    })
  }

  #refusal(answer: RefusedAnswer): Error {
    const { error, hiddenText } = deviceRefusal(this.device.name, answer)
    if (hiddenText !== undefined) this.#limits.onHiddenText?.(hiddenText)
    return error
  }

  /** One limit for all that comes before the body: interim answers (1xx) renew those of the client. */
  #boundHead() {
    const { name } = this.device
    const limitMs = this.#limits.idleTimeoutMs
    const head = new AbortController()
    const late = setTimeout(() => head.abort(deviceHeadLate(name, limitMs)), limitMs)
    let interimBytes = 0
    const onInfo = ({ headers }: { headers: unknown }) => {
      interimBytes += INTERIM_LINE_BYTES + JSON.stringify(headers).length
      if (interimBytes > HEADER_BYTES_MAX)
        head.abort(deviceProtocol(name, `sent more than ${HEADER_BYTES_MAX} bytes of interim answers`))
    }
    return { signal: head.signal, onInfo, [Symbol.dispose]: () => clearTimeout(late) }
  }

  async #readText(answer: DeviceAnswer, bytesMax: number): Promise<string> {
    const chunks: Buffer[] = []
    for await (const chunk of this.#bounded(answer, bytesMax)) chunks.push(chunk)
    return Buffer.concat(chunks).toString('utf8')
  }

  /** The body's bytes; its connection is broken when there are more than `bytesMax`. */
  async *#bounded(answer: DeviceAnswer, bytesMax: number): AsyncGenerator<Buffer, void> {
    const { name } = this.device
    let bytes = 0
    try {
      for await (const chunk of answer.body) {
        bytes += chunk.length
        if (bytes > bytesMax)
          throw deviceProtocol(name, `sent more than ${bytesMax} bytes where fewer will do`)
        yield chunk
      }
    } catch (error) {
      throw deviceFailure(name, error)
    }
  }
}

/** As much of a refusal as came; a broken one says less, but is a refusal all the same. */
async function readProblem(stream: DeviceStream): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for (let read = await stream.next(); read !== undefined; read = await stream.next()) {
      for (const piece of read.data) pieces.push(Buffer.from(piece))
      bytes += read.data.reduce((sum, piece) => sum + piece.length, 0)
      read.release()
      if (bytes > PROBLEM_BYTES_MAX) return ''
    }
  } catch {
    return ''
  }
  return Buffer.concat(pieces).toString('utf8')
}
