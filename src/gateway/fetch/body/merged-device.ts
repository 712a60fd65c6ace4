/**
 * One device of a merge: its stream, and the streams that follow it if it breaks off or was parked. They continue
 * exactly after what was delivered, or the device is given up.
 */
import { addAbortListener } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError } from '../../../shared/base/error.ts'
import type { Log } from '../../../shared/base/log.ts'
import { formatPcapHeader, type StreamHeader } from '../../../shared/pcap/pcap-header.ts'
import { PCAP_HEADER_BYTES } from '../../../shared/pcap/pcap-sizes.ts'
import { withoutPadding } from '../../../shared/pcap/record-boundary.ts'
import { type CompressedEncoding, isCompressed } from '../../../shared/query/download/query-values.ts'
import { isForeign, kindOfAnswer } from '../../device/device-kind.ts'
import {
  type DownloadPlan,
  type DownloadStep,
  mergeStep,
  mergeStepFromBytes,
  type TimeRange,
} from '../../fleet/plan/plan.ts'
import { afterDelivered, CANNOT_CONTINUE, type DeliveredEnd } from '../../pcap/after-delivered.ts'
import type { FileInterfaces, StreamOptions } from '../../pcap/file-interfaces.ts'
import {
  type ArrivedRecords,
  type ChunkStream,
  PcapInput,
  SORT_WINDOW,
  type SortWindow,
} from '../../pcap/pcap-input.ts'
import { taggedRecords } from '../../pcap/tagged-records.ts'
import { decode } from '../encoding/decode.ts'
import type { CountedDamage } from '../lines/device-count.ts'
import { type DeviceEnd, isOrdered, NO_END, readClaims } from '../proof/device-claims.ts'
import { type ReopenStep, retryAfterMs } from '../stream/leased-streams.ts'
import type { Source } from '../stream/source.ts'

/** How a device that broke off is retried. */
export interface RetryTimings {
  /** Maximum number of retries within `withinMs`. */
  readonly attempts: number
  readonly withinMs: number
  /** Pause before the second attempt, doubled for each later one; the first attempt has none. */
  readonly pauseMs: number
}

/** Fails like a count of the device. Needs its lease, under which it sends nothing meanwhile. */
export type CountDamage = (device: string, range: TimeRange, signal: AbortSignal) => Promise<CountedDamage>

export interface MergedDeviceOptions {
  readonly step: DownloadStep
  readonly plan: Pick<DownloadPlan, 'query' | 'wholeBeginNs'>
  readonly reopen: ReopenStep
  /** Counts the damaged blocks of a range, which the device reads again. */
  readonly countDamage: CountDamage
  readonly log: Pick<Log, 'warn'>
  readonly signal: AbortSignal
  /** Subtracted from its timestamps. */
  readonly alignNs: bigint | undefined
  /** Called when the device is given up; returns whether the merge continues without it or fails. */
  readonly goesOnWithout: (device: MergedDevice) => boolean
  readonly timings: RetryTimings
  /** Those of a merge in pcapng, which the device is asked for if it is one of ours. */
  readonly interfaces?: FileInterfaces | undefined
}

export class MergedDevice {
  readonly name: string
  readonly #options: MergedDeviceOptions
  #reopen: ReopenStep
  #source: Source | undefined
  #input: PcapInput | undefined
  #park = new AbortController()
  #retries = 0
  /** The current failure: since when, after how many packets, and how often the device was retried. */
  #breakOff = { sinceMs: 0, packets: -1, attempts: 0 }
  #isOrdered = false
  /** As its answer shows, also where its kind is not known yet or no longer right. */
  #isThirdParty = false
  #sortWindow: SortWindow | undefined
  /** Whether a later stream began at a time; packets that were stored after it with an earlier time are missing. */
  #wasContinuedByTime = false
  /** The range that earlier streams have delivered: what the last one says at its end is not about it. */
  #earlier: TimeRange | undefined
  /** Damaged blocks of that range. */
  #earlierCorruptBlocks = 0n
  /** Why they could not be counted, if so. */
  #doubt: CapfleetError | undefined
  /** What the device had removed when it was asked first; undefined if that is not known. */
  #agedOutBeforeNs: bigint | undefined
  #unparked = Promise.withResolvers<void>()
  #error: CapfleetError | undefined

  constructor(options: MergedDeviceOptions) {
    this.name = options.step.device
    this.#options = options
    this.#reopen = options.reopen
    const { wholeBeginNs, query } = options.plan
    if (wholeBeginNs !== undefined) this.#earlier = { beginNs: wholeBeginNs, endNs: query.beginNs }
  }

  /** Starts with a stream that is already open. */
  async open(source: Source): Promise<PcapInput> {
    const { alignNs, plan, step } = this.#options
    this.#isThirdParty = isForeign(step.deviceKind) || kindOfAnswer(source.headers) === 'api'
    this.#source = source
    this.#isOrdered = isOrdered(plan.query, readClaims(source.headers))
    this.#sortWindow = this.#windowOf(step)
    // Of a rest it is not known what the device had removed when it was asked first.
    if (plan.wholeBeginNs === undefined)
      this.#agedOutBeforeNs = readClaims(source.headers).agedOutBeforeNs ?? 0n
    this.#input = await PcapInput.open(this.name, this.#recordsOf(source, { isContinued: false }), {
      resume: (cause, arrived) => this.#resume(cause, arrived),
      marksTail: !this.#isOrdered,
      marksAll: this.#startsOver,
      sortWindow: this.#sortWindow,
      interface: this.#isTagged ? 'tagged' : undefined,
      ...(alignNs === undefined ? {} : { alignNs }),
    })
    const { interfaces } = this.#options
    if (interfaces !== undefined && !this.#isTagged)
      this.#input.interface = interfaces.addDevice(this.name, this.#input.header)
    return this.#input
  }

  /** Whether it says of each packet which port it is from. */
  get #isTagged(): boolean {
    return this.#options.interfaces !== undefined && !this.#isThirdParty
  }

  /** Whether it can only be continued by asking for all of it again, where its packets have no time order. */
  get #startsOver(): boolean {
    return this.#isThirdParty || (this.#isTagged && !this.#isOrdered)
  }

  /** The source's packets as a PCAP. */
  #recordsOf(source: Source, { isContinued }: Pick<StreamOptions, 'isContinued'>): ChunkStream {
    const { interfaces, alignNs = 0n } = this.#options
    const chunks = chunksOf(source)
    if (interfaces === undefined || this.#isThirdParty) return chunks
    return taggedRecords(chunks, { device: this.name, interfaces, alignNs, isContinued })
  }

  #windowOf({ kept }: DownloadStep): SortWindow | undefined {
    if (kept === undefined) return this.#isThirdParty && !this.#isOrdered ? SORT_WINDOW : undefined
    const { alignNs = 0n } = this.#options
    return { ...SORT_WINDOW, range: { beginNs: kept.beginNs - alignNs, endNs: kept.endNs - alignNs } }
  }

  /** Reports that the device never opened, or cannot be asked any more. */
  giveUp(error: CapfleetError): void {
    this.#error = error
  }

  /** How often the device was retried because it broke off. */
  get retries(): number {
    return this.#retries
  }

  /** Whether the device guarantees that packets are in time order. */
  get isOrdered(): boolean {
    return this.#isOrdered
  }

  /** How late packets to be sorted may be; undefined: all are passed on in order of arrival. */
  get sortWindow(): SortWindow | undefined {
    return this.#sortWindow
  }

  /** Why it was given up, if it was. */
  get error(): CapfleetError | undefined {
    return this.#error
  }

  /** What the device stated at the end of its stream, and of what was delivered before that. */
  get end(): DeviceEnd {
    const end = this.#source?.body.end ?? NO_END
    if (this.#doubt !== undefined) return { ...end, isUnverified: true }
    const earlier = this.#earlierCorruptBlocks
    return earlier === 0n ? end : { ...end, corruptBlocks: (end.corruptBlocks ?? 0n) + earlier }
  }

  /** Why it is not known whether everything was delivered, if so. */
  get doubt(): CapfleetError | undefined {
    return this.#doubt
  }

  park(): void {
    this.#input?.park()
    this.#park.abort(PARKED)
  }

  unpark(reopen: ReopenStep): void {
    this.#reopen = reopen
    this.#park = new AbortController()
    this.#input?.unpark()
    this.#unparked.resolve()
    this.#unparked = Promise.withResolvers()
  }

  /**
   * Call it when the stream has ended, before `end` is read. The device reads again what earlier streams have
   * delivered, and counts the damaged blocks that they left out. Resolves when it has, or cannot: that is the doubt then.
   * Third-party devices are not asked: they do not report damage.
   */
  async checkEarlier(): Promise<void> {
    const { signal } = this.#options
    while (this.#earlier !== undefined && !this.#isThirdParty && this.#error === undefined) {
      const park = this.#park.signal
      try {
        if (park.aborted) await this.#untilUnparked()
        else return await this.#countEarlier(this.#earlier, AbortSignal.any([signal, park]))
      } catch (error) {
        signal.throwIfAborted()
        if (!park.aborted) throw error
      }
    }
  }

  /** See ResumeInput. Also undefined if the device is parked; this is then called again. */
  async #resume(cause: unknown, arrived: ArrivedRecords): Promise<AsyncIterator<Uint8Array> | undefined> {
    const { signal } = this.#options
    const park = this.#park.signal
    let failure = cause
    if (cause !== undefined) this.#noteBreak(arrived.packets)
    while (failure === undefined || this.#mayAskAgain(failure)) {
      try {
        if (failure !== undefined) await this.#pause(failure, AbortSignal.any([signal, park]))
        return await this.#continue(arrived, AbortSignal.any([signal, park]))
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
    if (!(failure instanceof CapfleetError) || failure.cause === CANNOT_CONTINUE) return false
    const { attempts, withinMs } = this.#options.timings
    const { sinceMs, attempts: before } = this.#breakOff
    return failure.kind.retry && before < attempts && performance.now() - sinceMs <= withinMs
  }

  /** A stream that broke off without delivering a packet continues the previous failure. */
  #noteBreak(packets: number): void {
    if (packets === this.#breakOff.packets) return
    this.#breakOff = { sinceMs: performance.now(), packets, attempts: 0 }
  }

  /** Counts another attempt and waits before it, as long as the device asked for. */
  async #pause(failure: unknown, signal: AbortSignal): Promise<void> {
    const { attempts } = this.#breakOff
    const pauseMs = attempts > 0 ? this.#options.timings.pauseMs * 2 ** (attempts - 1) : 0
    const wantedMs = Math.max(pauseMs, retryAfterMs(failure) ?? 0)
    if (wantedMs > 0) await delay(wantedMs, undefined, { signal })
    signal.throwIfAborted()
    this.#breakOff.attempts++
    this.#retries++
  }

  /** Opens a stream and reads it up to the end of what was delivered. */
  async #continue(arrived: ArrivedRecords, signal: AbortSignal): Promise<AsyncIterator<Uint8Array>> {
    const header = this.#input?.header
    if (header === undefined) throw new Error('a device is continued before it is open')
    if (this.#wasContinuedByTime && arrived.outOfOrder > 0) throw outOfOrder(this.name)
    const { step, end } = this.#restOf(header, arrived)
    const source = await this.#reopen(step, signal)
    using _stop = addAbortListener(signal, () => source[Symbol.dispose]())
    try {
      const isOrderedNow = isOrdered(this.#options.plan.query, readClaims(source.headers))
      if (this.#isOrdered && !isOrderedNow) throw outOfOrder(this.name)
      const records = this.#recordsOf(source, { isContinued: true })
      const chunks = await afterDelivered(this.name, records, end)
      signal.throwIfAborted()
      this.#source = source
      if (end.ns !== undefined) {
        const { wholeBeginNs, query } = this.#options.plan
        this.#wasContinuedByTime = true
        this.#earlier = { beginNs: wholeBeginNs ?? query.beginNs, endNs: end.ns }
      }
      return this.#wasContinuedByTime ? this.#inOrder(chunks) : chunks
    } catch (error) {
      source[Symbol.dispose]()
      throw error
    }
  }

  /**
   * The request for the rest, and where in its answer the missing packets begin. By default it starts at the last
   * delivered timestamp, whose packets are returned again. If packets may be out of time order, that would lose what
   * the device holds later with an earlier time; the device is then asked to start by bytes, with the last packets.
   */
  #restOf(header: StreamHeader, arrived: ArrivedRecords): { step: DownloadStep; end: DeliveredEnd } {
    const { step, alignNs = 0n } = this.#options
    const { query } = this.#options.plan
    const { lastNs, ties, tail } = arrived
    const stream = { header, interface: this.#input?.interface }
    // A device without a packet so far has delivered nothing that could be repeated.
    if (lastNs === undefined) return { step, end: { ...stream, mark: tail, ns: undefined } }
    // The tail is all packets there.
    if (this.#startsOver) return { step, end: { ...stream, mark: tail, ns: undefined } }
    // The place of a packet in the device's pcapng is not known.
    if (this.#isTagged && arrived.outOfOrder > 0) throw outOfOrder(this.name)
    if (!this.#isOrdered || arrived.outOfOrder > 0) {
      const bytes = PCAP_HEADER_BYTES + arrived.bytes - tail.bytes
      // Uncompressed: a stream that begins in the middle has no first bytes that identify its format.
      const rest = mergeStepFromBytes(this.name, query, { bytes, header: formatPcapHeader(header) })
      return { step: rest, end: { ...stream, mark: tail, ns: undefined } }
    }
    const ns = lastNs + alignNs
    const endNs = this.#endOf(header, arrived)
    const later = mergeStep(step, { ...query, beginNs: ns, tsMaxNs: undefined, endNs })
    return { step: later, end: { ...stream, mark: ties, ns } }
  }

  /** TSMax counts from the first packet, which is not sent again. */
  #endOf({ nanoseconds }: StreamHeader, { firstNs }: ArrivedRecords): bigint {
    const { plan, alignNs = 0n } = this.#options
    const { query } = plan
    if (query.tsMaxNs === undefined || firstNs === undefined) return query.endNs
    // Rounded up: the first timestamp lacks what is below a microsecond.
    const unitNs = nanoseconds ? 1n : 1_000n
    const units = (firstNs + alignNs + query.tsMaxNs + unitNs - 1n) / unitNs
    return units * unitNs < query.endNs ? units * unitNs : query.endNs
  }

  /** Checked at the end: a device that claims this may be wrong. */
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

  async #countEarlier(range: TimeRange, ending: AbortSignal): Promise<void> {
    const late = AbortSignal.timeout(COUNT_MAX_MS)
    const signal = AbortSignal.any([ending, late])
    const { countDamage, timings, log } = this.#options
    for (let attempt = 1; ; attempt++) {
      try {
        const { corruptBlocks, agedOutBeforeNs = 0n } = await countDamage(this.name, range, signal)
        if (agedOutBeforeNs > (this.#agedOutBeforeNs ?? agedOutBeforeNs))
          throw uncounted(this.name, 'the device has removed packets of it since')
        this.#earlierCorruptBlocks = corruptBlocks
        return
      } catch (error) {
        ending.throwIfAborted()
        if (!(error instanceof CapfleetError || late.aborted)) throw error
        const mayAskAgain = error instanceof CapfleetError && error.kind.retry && attempt < COUNT_ATTEMPTS
        if (late.aborted || !mayAskAgain) {
          const why = late.aborted ? 'that took too long' : (error as CapfleetError).message
          this.#doubt = uncounted(this.name, why)
          log.warn('merge.damage-not-counted', { device: this.name, err: error })
          return
        }
        const pauseMs = Math.max(timings.pauseMs * attempt, retryAfterMs(error) ?? 0)
        await delay(pauseMs, undefined, { signal: ending })
      }
    }
  }

  async #untilUnparked(): Promise<void> {
    const { signal } = this.#options
    const aborted = Promise.withResolvers<never>()
    using _abort = addAbortListener(signal, () => aborted.reject(signal.reason))
    await Promise.race([this.#unparked.promise, aborted.promise])
  }
}

/** The client has all packets: it must not wait longer than this for the end of the file. */
const COUNT_MAX_MS = 600_000
const COUNT_ATTEMPTS = 3

function uncounted(device: string, why: string): CapfleetError {
  return new CapfleetError(
    'device-unverified',
    `device ${device} was asked again from a later time, and could not count which damaged blocks it had left out before: ${why}`,
    { members: { devices: [device] } },
  )
}

function outOfOrder(device: string): CapfleetError {
  return new CapfleetError(
    'device-protocol',
    `device ${device} was resumed by time after its stream broke off, but its packets are not in time order: some may be missing`,
    { members: { devices: [device] }, cause: CANNOT_CONTINUE },
  )
}

const PARKED = new Error('the download is parked')

/**
 * The source's file, decompressed. The source is disposed at the end, or when the iterator is returned. Its last chunk is then
 * unused, except by a decoder on its thread: the memory of that one is left to the garbage collector.
 */
function chunksOf(source: Source): ChunkStream {
  const { encoding, body } = source
  const chunks: ChunkStream = isCompressed(encoding) ? decodedChunks(source, encoding) : body
  return {
    take: () => chunks.take?.(),
    next: async () => {
      const next = await chunks.next()
      if (next.done === true) source[Symbol.dispose]()
      return next
    },
    return: () => {
      source[Symbol.dispose]()
      if (!isCompressed(encoding)) void giveBack(body)
      return Promise.resolve({ done: true, value: undefined })
    },
  }
}

/** Ends the stream. The failure that this causes can be ignored. */
async function giveBack(chunks: ChunkStream): Promise<void> {
  await chunks.return?.().catch(() => undefined)
}

/** Decompressed, without the zeros that may follow the last record; SourceBody removes them from uncompressed bodies. */
function decodedChunks(
  { device, body, headers }: Source,
  encoding: CompressedEncoding,
): AsyncIterator<Uint8Array> {
  const decoded = decode({ device, encoding, chunks: body })
  return kindOfAnswer(headers) === 'api' ? withoutPadding(`device ${device}`, decoded) : decoded
}
