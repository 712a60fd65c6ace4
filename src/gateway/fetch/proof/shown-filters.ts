/**
 * Third-party devices do not report what they ignore: one that ignores a filter sends all packets as if they had
 * passed it. So each must first show that it applies the filter: for a moment in which it has packets, a filter that
 * matches nothing must return none. The gateway checks that from time to time, on the stream that the download has
 * leased.
 */
import { addAbortListener } from 'node:events'
import { CapfleetError, type ErrorCode } from '../../../shared/base/error.ts'
import { FairLimit } from '../../../shared/base/fair-limit.ts'
import { parsePcapHeader } from '../../../shared/pcap/pcap-header.ts'
import { PCAP_HEADER_BYTES, RECORD_HEADER_BYTES } from '../../../shared/pcap/pcap-sizes.ts'
import { RecordCursor } from '../../../shared/pcap/record-cursor.ts'
import type { DeviceClient } from '../../device/device-client.ts'
import { deviceLate, deviceProtocol } from '../../device/device-failure.ts'
import { unknownTo } from '../../device/device-kind.ts'
import type { DeviceStream } from '../../device/device-stream.ts'
import { MERGE_READ_SIZE } from '../../device/read-size.ts'
import { type DeviceState, ifUnchanged } from '../../fleet/device-identity.ts'
import type { DownloadStep } from '../../fleet/plan/plan.ts'
import { decode } from '../encoding/decode.ts'
import { compressionOf } from '../encoding/stream-encoding.ts'
import { type FilterInquiry, type FilterQuestion, FilterQuestions } from './filter-questions.ts'
import { noteEnded, openAfterAnother, orRefusal } from './possible-refusal.ts'

/** Limited, because another appliance may get the address without a visible difference. */
const SHOWN_FOR_MS = 600_000

/** Which filters a device has proved to apply. */
interface Shown {
  /** State of the device at that time. */
  readonly state: DeviceState
  /** By key of the question: when it was last answered (performance.now()). */
  readonly atMs: Map<string, number>
  /** By path: one download asks at a time, and the others wait for its answers. */
  readonly turns: Map<string, FairLimit>
}

/** Discarded if the device was unreachable or, as far as the gateway can see, was replaced. */
const SHOWN = new WeakMap<DeviceClient, Shown>()

export interface ShowingOptions {
  readonly caller: string
  readonly signal: AbortSignal
  /** The device must have begun each answer within this time. */
  readonly startTimeoutMs: number
  /** The same for a question that searches the whole download; also how long to wait while another download asks. */
  readonly patienceMs: number
  /** Default: a question ends with the download. */
  readonly keeper?: StreamKeeper | undefined
  /** Current state of the device. */
  readonly state: DeviceState
  /** Called before each stream that is opened after another one has ended, or after a wait. */
  readonly onReopening?: (() => void) | undefined
}

/** Keeps the lease of a download for a stream that the download does not wait for any more. */
export interface StreamKeeper {
  /** Ends the stream. */
  readonly signal: AbortSignal
  /** The lease is returned when `work` has ended; it never fails. */
  keep(work: Promise<unknown>): void
}

/** nothing: the device has no packet with which to show it, so the download must not return any. */
export type ShownFilters = 'all' | 'nothing'

/** Packets are removed when a device needs room; this is how often to start over with a new first packet. */
const ROUNDS = 3

/**
 * Resolves when the device heeds the filters of the step. Fails with bad-parameter when it does not know one, with
 * device-protocol when it shows nothing, with device-timeout, or as openStream().
 */
export async function awaitShownFilters(
  client: DeviceClient,
  { device, target }: Pick<DownloadStep, 'device' | 'target'>,
  options: ShowingOptions,
): Promise<ShownFilters> {
  const asked = new FilterQuestions(target)
  const { atMs, turns } = shownBy(client, options.state)
  const isOpen = ({ key }: FilterQuestion) => isLate(atMs.get(key))
  const inquiries = asked.inquiries.filter(({ questions }) => questions.some(isOpen))
  if (inquiries.length === 0) return 'all'
  const turn = turns.get(asked.pathname) ?? new FairLimit({ places: 1 })
  turns.set(asked.pathname, turn)
  const limit = {
    limitMs: options.patienceMs,
    late: deviceLate(device, WHAT_IS_LATE, options.patienceMs),
  }
  const place = await withinLimit(options.signal, limit, (signal) => turn.acquire(signal))
  const onShown = (key: string) => atMs.set(key, performance.now())
  const ask = async (signal: AbortSignal) => {
    using _turn = place
    return await new Questioner(client, asked, { ...options, signal }).askAll(isOpen, onShown)
  }
  const isSearch = inquiries.some((one) => one.isSearch)
  const { keeper } = options
  const result =
    isSearch && keeper !== undefined
      ? await withinLimit(options.signal, limit, (signal) => orLeave(ask, { signal, keeper }))
      : await ask(options.signal)
  options.onReopening?.()
  return result
}

const WHAT_IS_LATE = 'show that it applies the filter, for which it may search all packets,'

/** A device that has not answered by then never will. */
const SEARCH_MAX_MS = 3_600_000

/**
 * Resolves like `work`, or fails with the reason of the signal. The work then continues, and the lease is kept: a device
 * continues a search, and counts its stream, even if its client disconnects. The next download need not ask again.
 */
async function orLeave<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  { signal, keeper }: { readonly signal: AbortSignal; readonly keeper: StreamKeeper },
): Promise<Result> {
  const working = work(keeper.signal)
  const left = Promise.withResolvers<never>()
  using _leaving = addAbortListener(signal, () => {
    keeper.keep(working.catch(() => undefined))
    left.reject(signal.reason)
  })
  return await Promise.race([working, left.promise])
}

function shownBy(client: DeviceClient, now: DeviceState): Shown {
  const before = SHOWN.get(client)
  const state = before && ifUnchanged(before.state, now)
  const shown = {
    state: state ?? now,
    // A check that began before the change notes what it finds in the former map.
    atMs: before !== undefined && state !== undefined ? before.atMs : new Map<string, number>(),
    turns: before?.turns ?? new Map<string, FairLimit>(),
  }
  SHOWN.set(client, shown)
  return shown
}

function isLate(shownAtMs = -Infinity): boolean {
  return performance.now() - shownAtMs > SHOWN_FOR_MS
}

/** A device's answer to a filter that no packet passes. */
type FilterAnswer = 'packets' | 'no packets' | 'refused'

class Questioner {
  readonly #client: DeviceClient
  readonly #asked: FilterQuestions
  readonly #options: ShowingOptions
  #streams = 0

  constructor(client: DeviceClient, asked: FilterQuestions, options: ShowingOptions) {
    this.#client = client
    this.#asked = asked
    this.#options = options
  }

  get #device(): string {
    return this.#client.device.name
  }

  /** Like awaitShownFilters(), for the questions that are open; calls `onShown` with the key of each proved filter. */
  async askAll(
    isOpen: (question: FilterQuestion) => boolean,
    onShown: (key: string) => void,
  ): Promise<ShownFilters> {
    const [filters, tunnels] = this.#asked.inquiries
    const shown = filters && (await this.#ask(filters, filters.questions.filter(isOpen), onShown))
    // Where no packet is in a tunnel, it makes no difference whether the device looks inside.
    if (shown === 'all' && tunnels !== undefined)
      await this.#ask(tunnels, tunnels.questions.filter(isOpen), onShown).catch((error: unknown) => {
        // The caller did not write the filter for tunnels.
        throw error instanceof CapfleetError && isOfFilter(error)
          ? unknownTo(this.#device, 'FilterBPFDecap')
          : error
      })
    return shown ?? 'all'
  }

  async #ask(
    inquiry: FilterInquiry,
    questions: readonly FilterQuestion[],
    onShown: (key: string) => void,
  ): Promise<ShownFilters> {
    if (questions.length === 0) return 'all'
    for (let round = 0; round < ROUNDS; round++) {
      // With TSMode, some devices select packets by the corrected time, others by the hardware time.
      const isTimedByHardware = !this.#asked.hasTimeSource || round % 2 === 0
      const everything = inquiry.everything({ isTimedByHardware })
      const found = { isSearch: inquiry.isFoundBySearch }
      const firstNs = await this.#firstTimeOf(everything, found)
      if (firstNs === undefined) return 'nothing'
      // The same request without the filter, before and after: it must be the filter that holds the packets back.
      const hasPackets = async () => (await this.#firstTimeOf(inquiry.ofMoment(firstNs), found)) !== undefined
      const answerTo = (question: FilterQuestion) =>
        this.#answerTo(question, question.ofMoment(firstNs), inquiry)
      if (!(await hasPackets())) continue
      const refused: FilterQuestion[] = []
      const shown: FilterQuestion[] = []
      for (const question of questions) {
        if ((await answerTo(question)) === 'refused') refused.push(question)
        else shown.push(question)
      }
      if (!(await hasPackets())) continue
      // A rejection may have had another reason, so it must occur twice.
      let isShown = true
      for (const question of refused) {
        if ((await answerTo(question)) === 'refused') shown.push(question)
        else isShown = false
      }
      for (const { key } of shown) onShown(key)
      if (isShown) return 'all'
    }
    throw deviceProtocol(
      this.#device,
      'does not find a packet again by its time, so it cannot show that it filters',
    )
  }

  /** Fails with bad-parameter when packets come. */
  async #answerTo(
    { name }: FilterQuestion,
    target: string,
    { isSearch }: FilterInquiry,
  ): Promise<Exclude<FilterAnswer, 'packets'>> {
    try {
      if ((await this.#firstTimeOf(target, { isSearch })) === undefined) return 'no packets'
    } catch (error) {
      this.#options.signal.throwIfAborted()
      if (error instanceof CapfleetError && isOfFilter(error)) return 'refused'
      throw error
    }
    throw unknownTo(this.#device, name)
  }

  /**
   * Time of the first packet in nanoseconds since 1970, or undefined if there is none. The device may notice late that the
   * previous stream has ended, and reject the next one.
   */
  async #firstTimeOf(target: string, how: { readonly isSearch: boolean }): Promise<bigint | undefined> {
    const read = () => this.#readFirstTime(target, how)
    return await (this.#streams++ === 0 ? read() : openAfterAnother(read, this.#options.signal))
  }

  async #readFirstTime(target: string, { isSearch }: { readonly isSearch: boolean }) {
    const { caller, signal, startTimeoutMs, patienceMs, keeper, onReopening } = this.#options
    const searchMs = keeper === undefined ? patienceMs : SEARCH_MAX_MS
    const limit = isSearch
      ? { limitMs: searchMs, late: deviceLate(this.#device, WHAT_IS_LATE, searchMs) }
      : { limitMs: startTimeoutMs, late: deviceLate(this.#device, 'begin to answer', startTimeoutMs) }
    onReopening?.()
    return await orRefusal(() =>
      withinLimit(signal, limit, async (within) => {
        using stream = await this.#client.openStream(target, {
          caller,
          signal: within,
          readSize: MERGE_READ_SIZE,
          mayPause: isSearch,
          isForced: false,
        })
        const firstNs = await firstTimeIn(this.#device, stream)
        noteEnded(this.#client)
        return firstNs
      }),
    )
  }
}

interface Limit {
  readonly limitMs: number
  readonly late: CapfleetError
}

/** Fails with `late` when `work` takes longer, or with the signal's reason. REQUIRES: `work` fails with the reason of its signal. */
async function withinLimit<Result>(
  signal: AbortSignal,
  { limitMs, late }: Limit,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(late), limitMs)
  try {
    return await work(AbortSignal.any([signal, abort.signal]))
  } finally {
    clearTimeout(timer)
  }
}

/** A device that rejects the filter has evaluated it. */
export function isOfFilter({ code, details }: CapfleetError): boolean {
  return OF_FILTERS.has(code) || details.members?.deviceStatus === 400
}

const OF_FILTERS: ReadonlySet<ErrorCode> = new Set(['bad-parameter', 'bad-bpf', 'bad-frame-filter'])

/** Time of the first packet in nanoseconds since 1970; undefined: there is none. */
async function firstTimeIn(device: string, stream: DeviceStream): Promise<bigint | undefined> {
  const bytes = await firstBytes(device, stream, PCAP_HEADER_BYTES + RECORD_HEADER_BYTES)
  const header = parsePcapHeader(bytes, `device ${device}`)
  const first = bytes.subarray(PCAP_HEADER_BYTES)
  const record = new RecordCursor(first, header)
  // Zeros fill a file up.
  return record.hasHeader && first.some((byte) => byte !== 0) ? record.ns : undefined
}

const MAGIC_BYTES = 4

/** The first bytes of the file, which may come compressed; fewer when it has no more. */
async function firstBytes(device: string, stream: DeviceStream, count: number): Promise<Buffer> {
  const pieces = piecesOf(stream)
  const begin = await gather(pieces, MAGIC_BYTES)
  const encoding = compressionOf(begin)
  const chunks = continued(begin, pieces)
  const file = encoding === undefined ? chunks : decode({ device, encoding, chunks })
  try {
    return (await gather(file, count)).subarray(0, count)
  } finally {
    await file.return(undefined)
  }
}

/** At least so many bytes, or all; the rest stays in `pieces`. */
async function gather(pieces: AsyncIterator<Buffer>, count: number): Promise<Buffer> {
  let bytes: Buffer = Buffer.alloc(0)
  while (bytes.length < count) {
    const next = await pieces.next()
    if (next.done === true) break
    bytes = Buffer.concat([bytes, next.value])
  }
  return bytes
}

async function* piecesOf(stream: DeviceStream): AsyncGenerator<Buffer> {
  for (let read = await stream.next(); read !== undefined; read = await stream.next()) {
    const bytes = Buffer.concat(read.data)
    read.release()
    yield bytes
  }
}

async function* continued(begin: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield begin
  yield* rest
}
