/** HTTP client for one device: questions whose answers are read here, downloads, and forwarded calls. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CapfleetError } from '../../shared/base/error.ts'
import { FairLimit } from '../../shared/base/fair-limit.ts'
import { JoinedSignal } from '../../shared/base/joined-signal.ts'
import { ConnectionPool } from './connection-pool.ts'
import type { Device } from './device.ts'
import { NO_IDLE_TIMEOUT } from './device-connection.ts'
import { deviceFailure, deviceLate, deviceProtocol } from './device-failure.ts'
import { JsonList, parseDeviceJson } from './device-json.ts'
import { deviceRefusal, type RefusedAnswer } from './device-refusal.ts'
import { type DeviceRequest, formatRequest } from './device-request.ts'
import type { DeviceStream } from './device-stream.ts'
import type { ReadSizeLimits } from './read-size.ts'
import { MalformedAnswer } from './response-head.ts'

export interface DeviceClientLimits {
  readonly connectTimeoutMs: number
  /**
   * A device that sends nothing for this long while we are reading has failed, and so has one whose response head is
   * not complete by then.
   */
  readonly idleTimeoutMs: number
  /** How long a connection may be idle between two questions. Default: idleTimeoutMs. */
  readonly restMs?: number
  /** Called with device texts that are not shown to callers. */
  readonly onHiddenText?: ((text: string) => void) | undefined
}

export interface TimeLimit {
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export interface QuestionOptions {
  /** Longest answer that is accepted. */
  readonly bytesMax: number
  readonly signal: AbortSignal
  /** Time limit for the whole answer. Default: only the client's own limits. */
  readonly timeoutMs?: number
  /** Label of the caller, which is sent to the device. */
  readonly caller?: string
  /** Whether the request changes something on the device; such a request is never sent twice. */
  readonly isChange?: boolean
  /** See DeviceRequest. */
  readonly isAnonymous?: boolean
  /** Called with the headers of a 200 answer, before any of its body is returned. */
  readonly onHeaders?: (headers: Readonly<Record<string, string>>) => void
}

/** How much of a list is accepted. */
export interface ListLimits {
  readonly bytesMax: number
  readonly entriesMax: number
}

export interface StreamOptions {
  /** Label of the caller who requested the download. */
  readonly caller: string
  readonly readSize: ReadSizeLimits
  /** The device may pause for as long as it likes; only a dead one fails. */
  readonly mayPause: boolean
  /** A device that sends nothing for this long has failed. Default: idleTimeoutMs. */
  readonly silenceMs?: number
  /** Whether FilterBPF contains a filter that is imposed on the caller. */
  readonly isForced: boolean
  readonly signal: AbortSignal
}

export interface LiveOptions {
  /** Label of the listener. */
  readonly caller: string
  /** A device that sends nothing for this long has failed. */
  readonly silenceMs: number
  readonly signal: AbortSignal
}

/**
 * Maximum size of an answer by kind of question. All are far above what the API needs: the version is three short
 * texts, a status about 12 KiB, an estimate 200 bytes. Lists have their own settings (control.listBytesMax,
 * control.listEntriesMax).
 */
export const ANSWER_BYTES_MAX = {
  clock: 1_024,
  version: 4_096,
  status: 256 * 1_024,
  estimate: 16 * 1_024,
  /** For any call to several devices; those that read the status have the longest answers. */
  control: 1_024 * 1_024,
} as const

/**
 * Maximum number of concurrent questions. High enough that a caller whose slow filters keep some of them busy does not
 * block others. Downloads are limited by their leases, forwarded calls by CallLimits.
 */
const QUESTIONS_MAX = 128
const PROBLEM_BYTES_MAX = 65_536
const USER_AGENT = { 'user-agent': 'capfleet-gateway' }

export class DeviceClient {
  readonly device: Device
  readonly #limits: DeviceClientLimits
  readonly #pool: ConnectionPool
  readonly #questions = new FairLimit({ places: QUESTIONS_MAX })

  constructor(device: Device, limits: DeviceClientLimits) {
    this.device = device
    this.#limits = limits
    this.#pool = new ConnectionPool(device, {
      connectTimeoutMs: limits.connectTimeoutMs,
      idleMs: limits.restMs ?? limits.idleTimeoutMs,
    })
  }

  /**
   * The text of a 200 answer to a GET of `target` (path and query). Fails with device-unreachable, device-timeout,
   * device-protocol (also if the answer exceeds `bytesMax`), the signal's reason, or the device's own error if the
   * status is not 200. Redirects are not followed.
   */
  async getText(target: string, options: QuestionOptions): Promise<string> {
    return this.#ask(target, options)
  }

  /** The JSON body of a 200 answer. Fails like getText, and with device-protocol. */
  async getJson(target: string, options: QuestionOptions): Promise<unknown> {
    const text = await this.#ask(target, options)
    return parseDeviceJson(this.device.name, text, { path: pathOf(target) })
  }

  /**
   * A list of any length in a 200 answer, {..., "List":[{...}, ...]}: yields the texts of its entries as they arrive
   * and returns the other members. The first batch is empty and comes with the response head, before any of the body
   * is read. Fails like getJson, possibly after some entries.
   */
  async *getList(
    target: string,
    { bytesMax, entriesMax }: ListLimits,
    { signal, onHeaders }: Pick<QuestionOptions, 'signal' | 'onHeaders'>,
  ): AsyncGenerator<readonly string[], Readonly<Record<string, unknown>>> {
    using _place = await this.#questions.acquire(signal)
    using answer = await this.#openQuestion(target, { bytesMax, signal, ...(onHeaders && { onHeaders }) })
    yield []
    const list = new JsonList()
    let entries = 0
    try {
      for await (const bytes of this.#bounded(answer, bytesMax)) {
        const found = list.push(bytes)
        entries += found.length
        if (entries > entriesMax) throw new MalformedAnswer(`sent a list of more than ${entriesMax} entries`)
        yield found
        // Without this pause the list of a fast device would be read in one go, blocking everything else.
        await nextTurn()
      }
      return list.end()
    } catch (error) {
      if (!(error instanceof MalformedAnswer)) throw error
      throw deviceProtocol(this.device.name, `${error.message} for ${pathOf(target)}`)
    }
  }

  /**
   * GETs a download over a connection of its own. The caller must dispose the stream; `signal` ends it too. Fails like
   * getText.
   */
  async openStream(
    target: string,
    { caller, readSize, mayPause, silenceMs = this.#limits.idleTimeoutMs, isForced, signal }: StreamOptions,
  ): Promise<DeviceStream> {
    const headers = {
      'capfleet-caller': caller,
      ...(isForced ? { 'capfleet-forced-filter': 'true' } : {}),
      te: 'trailers',
      ...USER_AGENT,
      connection: 'close, te',
    }
    const request = formatRequest(this.device, { target, headers })
    const idleTimeoutMs = mayPause ? NO_IDLE_TIMEOUT : silenceMs
    const answer = await this.#pool.askAlone(request, { signal, idleTimeoutMs, readSize })
    const download = { namesCapture: /[?&]StreamName=/.test(target) }
    return this.#accept(answer, { path: pathOf(target), download })
  }

  /**
   * GETs an endless answer of the device over a connection of its own; the caller must dispose it. The device may be
   * silent for `silenceMs`. Fails like getText.
   */
  async openLive(target: string, { caller, silenceMs, signal }: LiveOptions): Promise<DeviceStream> {
    const headers = { 'capfleet-caller': caller, ...USER_AGENT, connection: 'close' }
    const request = formatRequest(this.device, { target, headers })
    const limits = { signal, idleTimeoutMs: silenceMs, headTimeoutMs: this.#limits.idleTimeoutMs }
    return this.#accept(await this.#pool.askAlone(request, limits), { path: pathOf(target) })
  }

  /**
   * Any answer of the device, to be forwarded; the caller must dispose it. `timeoutMs` limits the device's silence and
   * the time until the response head is complete. REQUIRES: the request changes nothing.
   */
  async openAnswer(request: DeviceRequest, { timeoutMs, signal }: TimeLimit): Promise<DeviceStream> {
    const isHead = request.method === 'HEAD'
    const limits = { signal, isHead, idleTimeoutMs: timeoutMs, headTimeoutMs: timeoutMs }
    return await this.#pool.ask(formatRequest(this.device, request), limits)
  }

  /**
   * The headers of a 200 answer to HEAD of a download, for which the device makes all its checks but starts nothing;
   * empty for a device that does not support HEAD. Fails like getText; the status alone says why the device refused.
   */
  async getHead(
    target: string,
    { caller, timeoutMs, signal }: TimeLimit & { readonly caller: string },
  ): Promise<Readonly<Record<string, string>>> {
    const headers = { 'capfleet-caller': caller, ...USER_AGENT }
    return withinLimit(this.device.name, { timeoutMs, signal }, async (within) => {
      const request: DeviceRequest = { method: 'HEAD', target, headers }
      using answer = await this.openAnswer(request, { timeoutMs, signal: within })
      const { status, headers: told } = answer.head
      if (status === 200) return told
      if (status === 405 || status === 501) return {}
      const refused = { status, wants: told['www-authenticate'], retryAfter: told['retry-after'] }
      throw this.#refusal({ ...refused, path: pathOf(target), body: undefined })
    })
  }

  /** Closes all connections. */
  close(): void {
    this.#pool[Symbol.dispose]()
  }

  async #ask(target: string, options: QuestionOptions): Promise<string> {
    const { timeoutMs, signal } = options
    if (timeoutMs === undefined) return this.#askWithin(target, options, signal)
    const ask = (within: AbortSignal) => this.#askWithin(target, options, within)
    return withinLimit(this.device.name, { timeoutMs, signal }, ask)
  }

  async #askWithin(target: string, options: QuestionOptions, signal: AbortSignal): Promise<string> {
    using _place = await this.#questions.acquire(signal, options.caller)
    using answer = await this.#openQuestion(target, { ...options, signal })
    return await this.readText(answer, options.bytesMax)
  }

  /** Opens an answer of status 200. */
  async #openQuestion(
    target: string,
    { signal, caller, isChange = false, isAnonymous = false, onHeaders }: QuestionOptions,
  ): Promise<DeviceStream> {
    const { idleTimeoutMs } = this.#limits
    const request = formatRequest(this.device, {
      target,
      headers: {
        ...(caller === undefined ? {} : { 'capfleet-caller': caller }),
        ...USER_AGENT,
        ...(isChange ? { connection: 'close' } : {}),
      },
      isAnonymous,
    })
    const limits = { signal, idleTimeoutMs, headTimeoutMs: idleTimeoutMs }
    const answer = await (isChange ? this.#pool.askAlone(request, limits) : this.#pool.ask(request, limits))
    const accepted = await this.#accept(answer, { path: pathOf(target), isAnonymous })
    const encoding = accepted.head.headers['content-encoding'] ?? 'identity'
    if (encoding !== 'identity') {
      accepted[Symbol.dispose]()
      const what = `sent ${pathOf(target)} with Content-Encoding, although no encoding was requested`
      throw deviceProtocol(this.device.name, what)
    }
    onHeaders?.(accepted.head.headers)
    return accepted
  }

  /** Fails with the device's error if its answer is not 200, and then disposes the answer. */
  async #accept(
    answer: DeviceStream,
    asked: Pick<RefusedAnswer, 'path' | 'isAnonymous' | 'download'>,
  ): Promise<DeviceStream> {
    if (answer.head.status === 200) return answer
    using _refused = answer
    const { status, headers } = answer.head
    // A body that breaks off says less, but the answer is still a refusal.
    const body = await this.readText(answer, PROBLEM_BYTES_MAX).catch(() => '')
    const refused = { status, wants: headers['www-authenticate'], retryAfter: headers['retry-after'] }
    throw this.#refusal({ ...refused, body, ...asked })
  }

  #refusal(answer: RefusedAnswer): CapfleetError {
    const body = answer.body && this.device.withoutSecrets(answer.body)
    const { error, hiddenText } = deviceRefusal(this.device.name, { ...answer, body })
    if (hiddenText !== undefined) this.#limits.onHiddenText?.(hiddenText)
    return error
  }

  /** The body as UTF-8. Fails with device-protocol if it exceeds `bytesMax`. */
  async readText(answer: DeviceStream, bytesMax: number): Promise<string> {
    const pieces: Buffer[] = []
    for await (const piece of this.#bounded(answer, bytesMax)) pieces.push(piece)
    return Buffer.concat(pieces).toString('utf8')
  }

  /** The body as it arrives, one piece per read however small its chunks are. Fails if it exceeds `bytesMax`. */
  async *#bounded(answer: DeviceStream, bytesMax: number): AsyncGenerator<Buffer, void> {
    let bytes = 0
    for (let read = await answer.next(); read !== undefined; read = await answer.next()) {
      const piece = Buffer.concat(read.data)
      read.release()
      bytes += piece.length
      if (bytes > bytesMax) {
        const what = `sent more than ${bytesMax} bytes, more than the limit for this answer`
        throw deviceProtocol(this.device.name, what)
      }
      yield piece
    }
  }
}

/**
 * Calls `ask` with a signal that also aborts after the time-out. Fails with device-timeout on time-out, else with the
 * signal's reason or the failure of `ask`, as an error that names the device.
 */
export async function withinLimit<Answer>(
  device: string,
  { timeoutMs, signal }: TimeLimit,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  using limit = new JoinedSignal([signal], timeoutMs)
  try {
    return await ask(limit.signal)
  } catch (error) {
    signal.throwIfAborted()
    throw limit.signal.aborted ? deviceLate(device, 'answer', timeoutMs) : deviceFailure(device, error)
  }
}

function pathOf(target: string): string {
  return target.split('?', 1)[0] ?? target
}
