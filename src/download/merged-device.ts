import { CapfleetError } from '../base/error.ts'
import type { DownloadStep } from '../fleet/plan.ts'
import { afterDelivered, PACKETS_CHANGED } from '../pcap/after-delivered.ts'
import type { ChunkStream } from '../pcap/chunk-stream.ts'
import type { DeliveredRecords } from '../pcap/input-options.ts'
import { PcapInput } from '../pcap/pcap-input.ts'
import type { DownloadQuery } from '../query/download-query.ts'
import { decode } from './decode.ts'
import type { ReopenStep } from './merge-request.ts'
import { RESUME_TIMINGS, type ResumeTimings } from './resume-timings.ts'
import { isOrdered, resumedStep } from './resumed-step.ts'
import type { Source } from './source.ts'

export interface MergedDeviceOptions {
  readonly step: DownloadStep
  readonly query: DownloadQuery
  readonly reopen: ReopenStep
  readonly signal: AbortSignal
  /** Subtracted from its timestamps. */
  readonly alignNs: bigint | undefined
  /** Told why the device is given up. False: then the merge fails. */
  readonly goesOnWithout: (device: MergedDevice) => boolean
  readonly timings?: ResumeTimings | undefined
}

/**
 * One device of a merge: its stream, and the streams that follow it when it breaks off or was
 * parked. They continue exactly behind what was delivered, or the device is given up.
 */
export class MergedDevice {
  readonly name: string
  readonly #options: MergedDeviceOptions
  #reopen: ReopenStep
  #source: Source | undefined
  #input: PcapInput | undefined
  #park = new AbortController()
  #retries = 0
  /** The present trouble: since when, after how many packets, and how often it was asked again. */
  #breakOff = { sinceMs: 0, packets: -1, attempts: 0 }
  #isOrdered = false
  /** Its later stream began at a time: what it holds later with an earlier time did not come. */
  #wasContinuedByTime = false
  #error: CapfleetError | undefined

  constructor(options: MergedDeviceOptions) {
    this.name = options.step.device
    this.#options = options
    this.#reopen = options.reopen
  }

  /** Begins with a stream that is open already. */
  async open(source: Source): Promise<PcapInput> {
    const { alignNs, query } = this.#options
    this.#source = source
    this.#isOrdered = isOrdered(query, source)
    this.#input = await PcapInput.open(this.name, chunksOf(source), {
      resume: (cause, delivered) => this.#resume(cause, delivered),
      marksTail: !this.#isOrdered,
      ...(alignNs === undefined ? {} : { alignNs }),
    })
    return this.#input
  }

  /** It never opened, or cannot be asked any more. */
  giveUp(error: CapfleetError): void {
    this.#error = error
  }

  /** How often it was asked again because it broke off. */
  get retries(): number {
    return this.#retries
  }

  /** Whether it vouches for packets in the order of time. */
  get isOrdered(): boolean {
    return this.#isOrdered
  }

  /** Why it was given up, if it was. */
  get error(): CapfleetError | undefined {
    return this.#error
  }

  get trailers(): Readonly<Record<string, string>> {
    return this.#source?.trailers ?? {}
  }

  park(): void {
    this.#input?.park()
    this.#park.abort(PARKED)
  }

  unpark(reopen: ReopenStep): void {
    this.#reopen = reopen
    this.#park = new AbortController()
    this.#input?.unpark()
  }

  /** See ResumeInput. Undefined also when the device is parked: then this is asked again. */
  async #resume(cause: unknown, delivered: DeliveredRecords): Promise<AsyncIterator<Uint8Array> | undefined> {
    const { signal } = this.#options
    const park = this.#park.signal
    let failure = cause
    if (cause !== undefined) this.#noteBreak(delivered.packets)
    while (failure === undefined || this.#mayAskAgain(failure)) {
      try {
        if (failure !== undefined) await this.#pause(AbortSignal.any([signal, park]))
        return await this.#continue(delivered, AbortSignal.any([signal, park]))
      } catch (error) {
        signal.throwIfAborted()
        if (park.aborted) return undefined
        failure = error
      }
    }
    signal.throwIfAborted()
    if (!(failure instanceof CapfleetError)) throw failure
    this.giveUp(failure)
    if (!this.#options.goesOnWithout(this)) throw failure
    return undefined
  }

  #mayAskAgain(failure: unknown): boolean {
    if (!(failure instanceof CapfleetError) || failure.cause === PACKETS_CHANGED) return false
    const { attempts, withinMs } = this.#timings
    const { sinceMs, attempts: before } = this.#breakOff
    return failure.kind.retry && before < attempts && performance.now() - sinceMs <= withinMs
  }

  /** A stream that broke off without a further packet has the trouble that was there before. */
  #noteBreak(packets: number): void {
    if (packets === this.#breakOff.packets) return
    this.#breakOff = { sinceMs: performance.now(), packets, attempts: 0 }
  }

  /** Before a further attempt, which is counted. */
  async #pause(signal: AbortSignal): Promise<void> {
    const { attempts } = this.#breakOff
    if (attempts > 0) await delay(this.#timings.pauseMs * 2 ** (attempts - 1), signal)
    signal.throwIfAborted()
    this.#breakOff.attempts++
    this.#retries++
  }

  /** Opens a stream and reads it up to the place. */
  async #continue(delivered: DeliveredRecords, signal: AbortSignal): Promise<AsyncIterator<Uint8Array>> {
    const { step, query, alignNs = 0n } = this.#options
    const header = this.#input?.header
    if (header === undefined) throw new Error('a device is resumed before it is open')
    if (this.#wasContinuedByTime && delivered.outOfOrder > 0) throw outOfOrder(this.name)
    const resumed = resumedStep({ step, query, header, delivered, alignNs, isOrdered: this.#isOrdered })
    const source = await this.#reopen(resumed.step, signal)
    const stop = () => source[Symbol.dispose]()
    signal.addEventListener('abort', stop, { once: true })
    try {
      if (this.#isOrdered && !isOrdered(query, source)) throw outOfOrder(this.name)
      const chunks = await afterDelivered(this.name, chunksOf(source), resumed.place)
      signal.throwIfAborted()
      this.#source = source
      this.#wasContinuedByTime ||= resumed.place.ns !== undefined
      return this.#wasContinuedByTime ? this.#inOrder(chunks) : chunks
    } catch (error) {
      source[Symbol.dispose]()
      throw error
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** Checked at the end: a device that says so may be wrong. */
  #inOrder(chunks: AsyncIterator<Uint8Array>): AsyncIterator<Uint8Array> {
    return {
      ...chunks,
      next: async () => {
        const next = await chunks.next()
        const isLossy = next.done === true && (this.#input?.figures.outOfOrder ?? 0) > 0
        if (isLossy) throw outOfOrder(this.name)
        return next
      },
    }
  }

  get #timings(): ResumeTimings {
    return this.#options.timings ?? RESUME_TIMINGS
  }
}

function outOfOrder(device: string): CapfleetError {
  return new CapfleetError(
    'device-protocol',
    `device ${device} was continued by time after it broke off, but its packets are not in the order of time: some may be missing`,
    { members: { devices: [device] }, cause: PACKETS_CHANGED },
  )
}

const PARKED = new Error('the download is parked')

/**
 * The source's PCAP. The source is disposed at the end, and when the iterator is given back. Nobody looks
 * at its last chunk then, save a decoder on its thread: the memory of that one is left to the collector.
 */
function chunksOf(source: Source): ChunkStream {
  const { device, encoding } = source
  const chunks: ChunkStream =
    encoding === 'none' ? source.chunks : decode({ device, encoding, chunks: source.chunks })
  return {
    take: () => chunks.take?.(),
    next: async () => {
      const next = await chunks.next()
      if (next.done === true) source[Symbol.dispose]()
      return next
    },
    return: () => {
      source[Symbol.dispose]()
      if (encoding === 'none') void giveBack(source.chunks)
      return Promise.resolve({ done: true, value: undefined })
    },
  }
}

/** Its failure is the end that it was given. */
async function giveBack(chunks: AsyncIterator<Buffer>): Promise<void> {
  await chunks.return?.().catch(() => undefined)
}

function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
  })
}
