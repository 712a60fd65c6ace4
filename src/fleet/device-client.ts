import { Agent } from 'undici'
import type { Device } from './device.ts'
import { NO_IDLE_TIMEOUT } from './device-connection.ts'
import { deviceFailure, deviceProtocol, deviceRefusal } from './device-failure.ts'
import { DeviceStream } from './device-stream.ts'
import type { ReadSizeLimits } from './read-size.ts'

export interface DeviceClientLimits {
  readonly connectTimeoutMs: number
  /** A device that sends no byte of an answer for so long, while we read, has failed. */
  readonly idleTimeoutMs: number
}

/** By name in lower case. */
type QuestionHeaders = Readonly<Record<string, string>>

export interface StreamOptions {
  /** Name of the lease under which the stream is opened. */
  readonly lease: string
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

/** Downloads take up to four; the rest is for lists and probes. */
const CONNECTIONS = 12
const HEADER_BYTES_MAX = 16_384
/** Lists of ten thousand captures fit; an endless answer does not. */
const JSON_BYTES_MAX = 64 * 1024 * 1024
const PROBLEM_BYTES_MAX = 65_536
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
        signal,
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
      if (signal.aborted) throw signal.reason
      throw deviceFailure(device.name, error)
    }
  }

  /** The text of a 200 answer; fails like get, and with what the device's problem says. */
  async getText(target: string, signal: AbortSignal): Promise<string> {
    return this.#readText(await this.#getOk(target, signal), JSON_BYTES_MAX)
  }

  /**
   * GETs a download over a connection of its own. The stream is the caller's to dispose; `signal`
   * ends it too. Fails like get, and with what the device says when its answer is not 200.
   */
  async openStream(target: string, options: StreamOptions): Promise<DeviceStream> {
    const { device } = this
    const { lease, readSize, mayPause, signal } = options
    const limits = mayPause ? { ...this.#limits, idleTimeoutMs: NO_IDLE_TIMEOUT } : this.#limits
    const stream = await DeviceStream.open(device, { target, lease }, { ...limits, readSize, signal })
    if (stream.head.status === 200) return stream
    try {
      throw deviceRefusal(device.name, stream.head.status, await readProblem(stream))
    } finally {
      stream[Symbol.dispose]()
    }
  }

  /** The JSON body of a 200 answer; fails like getText, and with device-protocol. */
  async getJson(target: string, signal: AbortSignal): Promise<unknown> {
    return (await this.ask(target, signal, {})).json
  }

  /** As getJson, with a question in headers; tells the answer's headers too. */
  async ask(
    target: string,
    signal: AbortSignal,
    question: QuestionHeaders,
  ): Promise<Pick<DeviceAnswer, 'headers'> & { readonly json: unknown }> {
    const answer = await this.#getOk(target, signal, question)
    const text = await this.#readText(answer, JSON_BYTES_MAX)
    try {
      return { headers: answer.headers, json: JSON.parse(text) }
    } catch (cause) {
      throw deviceProtocol(this.device.name, `sent malformed JSON for ${target}`, cause)
    }
  }

  /** The error that an answer other than 200 means; reads its body. */
  async refusalOf(answer: DeviceAnswer): Promise<Error> {
    const text = await this.#readText(answer, PROBLEM_BYTES_MAX).catch(() => '')
    return deviceRefusal(this.device.name, answer.status, text)
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  async #getOk(target: string, signal: AbortSignal, question?: QuestionHeaders): Promise<DeviceAnswer> {
    const answer = await this.get(target, signal, question)
    if (answer.status !== 200) throw await this.refusalOf(answer)
    return answer
  }

  async #readText(answer: DeviceAnswer, limitBytes: number): Promise<string> {
    const chunks: Buffer[] = []
    let bytes = 0
    try {
      for await (const chunk of answer.body) {
        bytes += chunk.length
        if (bytes > limitBytes) throw deviceProtocol(this.device.name, `sent more than ${limitBytes} bytes`)
        chunks.push(chunk)
      }
    } catch (error) {
      throw deviceFailure(this.device.name, error)
    }
    return Buffer.concat(chunks).toString('utf8')
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
