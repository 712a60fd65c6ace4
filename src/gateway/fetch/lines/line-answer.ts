/**
 * A device's answer in lines, which arrive while it works: a search for addresses, a count of packets. If the device only
 * reads its indexes, it takes no stream. If it reads packets, the gateway waits for one of its streams, as for a download.
 */
import { addAbortListener } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { CapfleetError } from '../../../shared/base/error.ts'
import { FairLimit } from '../../../shared/base/fair-limit.ts'
import type { Device } from '../../device/device.ts'
import { deviceFailure, deviceLate } from '../../device/device-failure.ts'
import { callerLabel } from '../../device/device-request.ts'
import type { DeviceStream } from '../../device/device-stream.ts'
import { ANSWER_READ_SIZE } from '../../device/read-size.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import type { CallLimits } from '../../fleet/questions/call-limits.ts'
import type { Lease } from '../../lease/lease.ts'
import type { LeaseScheduler } from '../../lease/lease-scheduler.ts'
import { lacksProof, proveFilters } from '../proof/proved-filters.ts'
import { retryAfterMs } from '../stream/leased-streams.ts'

/** Reads and checks the lines of one device. */
export interface LineReader<Line> {
  /** undefined: the line is not for the caller. Fails with device-protocol, or with the error of the device. */
  read(text: string): Line | undefined
  /** Fails like an answer that broke off if it has no last line. */
  finish(): void
}

export interface LineQuestion<Line> {
  /** Path and query on a device. */
  readonly target: string
  /** Whether the device reads packets, and so needs a stream. */
  readonly readsPackets: boolean
  /** Whether packets are hidden from the caller: then the device must prove that it filters. */
  readonly isForced: boolean
  /** Fails if the head of the answer shows that the device answers another question. */
  checkHead?(device: string, stream: DeviceStream): void
  reader(device: string): LineReader<Line>
  /** Whether more is to be read by the device after this line. */
  isProgress(line: Line): boolean
  /** The error about a device that does not have the path. */
  unsupported(member: FleetMember, cause: unknown): CapfleetError
}

/** The answer of a device, or one that the gateway makes of its packets. */
export interface LineSource<Line> extends AsyncDisposable {
  /** Part by part as they arrive, up to the last line. */
  lines(): AsyncGenerator<readonly Line[]>
}

export interface LineParts {
  readonly leases: LeaseScheduler
  readonly callLimits: CallLimits
  /** Questions without a stream that devices are working on, of all requests of this gateway. */
  readonly turns: FairLimit
  /** Begins when the device is asked; aborts when it had enough time for its whole answer. */
  readonly answerLimit: () => AbortSignal
}

/** A device that sends a line now and then must not keep its stream, and the question, for ever. */
export const ANSWER_MAX_MS = 3_600_000

interface AnswerRequest {
  readonly user: string
  /** Ends the answer too, not only the wait for it. */
  readonly signal: AbortSignal
}

/** How a device is asked under a lease that the caller has. */
export interface HeldRequest extends AnswerRequest {
  /** Opens a stream under that lease. */
  readonly underLease: <Opened>(open: () => Promise<Opened>) => Promise<Opened>
}

export interface LineRequest extends AnswerRequest {
  /** The queue shows a lease under this id. */
  readonly leaseId: string
  /** How long to wait for a stream. */
  readonly waitMs: number
}

/** A device may search all its tables and sieves before it begins to answer, and read 256 MiB between two lines. */
const SILENCE_MS = 120_000

/** Dispose it when it is not needed any more: that closes the connection, and frees the stream. */
export class LineAnswer<Line> implements LineSource<Line> {
  readonly #device: string
  readonly #question: LineQuestion<Line>
  readonly #request: AnswerRequest
  readonly #stream: LimitedStream
  readonly #lease: Lease | undefined

  /**
   * Resolves when the device has begun to answer. Fails with the question's error if the device does not have the path,
   * with the errors of a device or of the queue, or with the reason of the signal.
   */
  static async open<Line>(
    member: FleetMember,
    question: LineQuestion<Line>,
    parts: LineParts,
    request: LineRequest,
  ): Promise<LineAnswer<Line>> {
    return await withOwnError(member, question, request, () =>
      (question.readsPackets ? openLeased : openInTurn)(member, question, parts, request),
    )
  }

  /** The same under a lease that the caller has, and under which the device sends nothing else. */
  static async openHeld<Line>(
    member: FleetMember,
    question: LineQuestion<Line>,
    request: HeldRequest,
  ): Promise<LineAnswer<Line>> {
    const answerLimit = () => AbortSignal.timeout(ANSWER_MAX_MS)
    const open = () => openStream(member, question, { ...request, answerLimit })
    return await withOwnError(member, question, request, async () => {
      const stream = await request.underLease(() => member.breaker.run(open))
      return new LineAnswer(member.device, { question, request }, stream)
    })
  }

  constructor(
    { name }: Pick<Device, 'name'>,
    { question, request }: { readonly question: LineQuestion<Line>; readonly request: AnswerRequest },
    stream: LimitedStream,
    lease?: Lease,
  ) {
    this.#device = name
    this.#question = question
    this.#request = request
    this.#stream = stream
    this.#lease = lease
  }

  /** Part by part as they arrive, up to the last line, without which it fails. Fails like open(). */
  async *lines(): AsyncGenerator<readonly Line[]> {
    const reader = this.#question.reader(this.#device)
    for await (const texts of this.#texts()) {
      const { lines, failure } = await this.#read(reader, texts)
      // The device has read what it had to: however slowly the rest is read, others may have its stream.
      if (lines.some((line) => !this.#question.isProgress(line))) await this.#lease?.[Symbol.asyncDispose]()
      if (lines.length > 0) yield lines
      if (failure !== undefined) throw failure
    }
    reader.finish()
  }

  /** Long lists of many devices arrive at the same time: other requests get their turns in between. */
  async #read(reader: LineReader<Line>, texts: readonly string[]): Promise<ReadLines<Line>> {
    const { signal, user } = this.#request
    using _turn = await READING.acquire(signal, user)
    const lines: Line[] = []
    let failure: unknown
    try {
      for (const text of texts) {
        const line = reader.read(text)
        if (line !== undefined) lines.push(line)
      }
    } catch (error) {
      failure = error
    }
    await nextTurn()
    return { lines, failure }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stream.limit[Symbol.dispose]()
    this.#stream.stream[Symbol.dispose]()
    await this.#lease?.[Symbol.asyncDispose]()
  }

  /** The lines of each part that arrives. */
  async *#texts(): AsyncGenerator<readonly string[]> {
    const decoder = new TextDecoder()
    let rest = ''
    const { stream } = this.#stream
    for (let read = await stream.next(); read !== undefined; read = await stream.next()) {
      const lines = (rest + decoder.decode(Buffer.concat(read.data), { stream: true })).split('\n')
      read.release()
      rest = lines.pop() ?? ''
      if (rest.length > LINE_MAX) lines.push(rest)
      yield lines
    }
    if (rest !== '') yield [rest]
  }
}

interface ReadLines<Line> {
  /** Those before the one that failed. */
  readonly lines: readonly Line[]
  readonly failure: unknown
}

/** Of 256 spans a line has a quarter of it. What follows is no line of an answer. */
const LINE_MAX = 65_536

/** Parts of answers whose lines are read in one turn of the event loop. */
const READING = new FairLimit({ places: 1 })

/** Fails with the question's error if the device does not have the path. */
async function withOwnError<Line>(
  member: FleetMember,
  { unsupported }: Pick<LineQuestion<Line>, 'unsupported'>,
  { signal }: Pick<AnswerRequest, 'signal'>,
  open: () => Promise<LineAnswer<Line>>,
): Promise<LineAnswer<Line>> {
  try {
    return await open()
  } catch (error) {
    signal.throwIfAborted()
    // Only the path can be missing.
    throw lacksProof(error) ? unsupported(member, error) : deviceFailure(member.device.name, error)
  }
}

/** The places are those of the work itself: however slowly its result is read, others may ask. */
async function openInTurn<Line>(
  member: FleetMember,
  question: LineQuestion<Line>,
  { callLimits, turns, answerLimit }: LineParts,
  request: LineRequest,
): Promise<LineAnswer<Line>> {
  const { name } = member.device
  const { user, signal } = request
  using _turn = await turns.acquire(signal, user)
  const open = () => openStream(member, question, { user, signal, answerLimit })
  const stream = await callLimits.run({ device: name, user }, () => member.breaker.run(open))
  return new LineAnswer(member.device, { question, request }, stream)
}

async function openLeased<Line>(
  member: FleetMember,
  question: LineQuestion<Line>,
  { leases, answerLimit }: LineParts,
  request: LineRequest,
): Promise<LineAnswer<Line>> {
  const { name } = member.device
  const { user, leaseId, waitMs, signal } = request
  member.breaker.check()
  const deadlineMs = performance.now() + waitMs
  const lease = await leases.acquire({ id: leaseId, devices: [name], class: 'bulk', user, waitMs, signal })
  const open = () =>
    member.breaker.run(() =>
      openStream(member, question, { user, signal: AbortSignal.any([signal, lease.lost]), answerLimit }),
    )
  try {
    for (;;) {
      try {
        const stream = await open()
        lease.opened()
        return new LineAnswer(member.device, { question, request }, stream, lease)
      } catch (error) {
        const leftMs = Math.max(0, deadlineMs - performance.now())
        if (leftMs === 0 || !isBusy(error)) throw error
        await lease.requeue(name, { signal, waitMs: leftMs, busyMs: retryAfterMs(error) })
      }
    }
  } catch (error) {
    await lease[Symbol.asyncDispose]()
    throw error
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof CapfleetError && error.code === 'download-slots-exhausted'
}

interface LimitedStream {
  readonly stream: DeviceStream
  /** Dispose it when the answer has ended. */
  readonly limit: Disposable
}

async function openStream(
  { device, client }: FleetMember,
  question: Pick<LineQuestion<unknown>, 'target' | 'isForced' | 'checkHead'>,
  { user, signal, answerLimit }: AnswerRequest & Pick<LineParts, 'answerLimit'>,
): Promise<LimitedStream> {
  const { target, isForced } = question
  const late = new AbortController()
  using opened = new DisposableStack()
  const limit = opened.use(
    addAbortListener(answerLimit(), () =>
      late.abort(deviceLate(device.name, 'end its answer', ANSWER_MAX_MS)),
    ),
  )
  const onLate = () => late.abort(deviceLate(device.name, 'begin to answer', SILENCE_MS))
  const timer = setTimeout(onLate, SILENCE_MS)
  const asking = { caller: callerLabel(user), signal: AbortSignal.any([signal, late.signal]) }
  try {
    if (isForced) await proveFilters(client, { device: device.name }, asking)
    const stream = await client.openStream(target, {
      ...asking,
      readSize: ANSWER_READ_SIZE,
      silenceMs: SILENCE_MS,
      // For callers with a forced filter everything is read, and nothing is said of it before the end.
      mayPause: isForced,
      isForced,
    })
    opened.use(stream)
    question.checkHead?.(device.name, stream)
    opened.move()
    return { stream, limit }
  } finally {
    clearTimeout(timer)
  }
}
