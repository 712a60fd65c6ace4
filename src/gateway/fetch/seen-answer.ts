/**
 * A device's answer to a search for addresses. Without Verify it takes no stream: the device finds its answer in its
 * indexes. With Verify the device reads packets, and the gateway waits for one of its streams, as for a download.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { CapfleetError } from '../../shared/base/error.ts'
import { FairLimit } from '../../shared/base/fair-limit.ts'
import type { Device } from '../device/device.ts'
import { deviceFailure, deviceLate } from '../device/device-failure.ts'
import { callerLabel } from '../device/device-request.ts'
import type { DeviceStream } from '../device/device-stream.ts'
import { ANSWER_READ_SIZE } from '../device/read-size.ts'
import type { CallLimits } from '../fleet/call-limits.ts'
import type { FleetMember } from '../fleet/fleet.ts'
import {
  type SeenLine,
  type SeenQuestion,
  SeenReader,
  seenTarget,
  seenUnsupported,
} from '../fleet/seen-question.ts'
import type { Lease } from '../lease/lease.ts'
import type { LeaseScheduler } from '../lease/lease-scheduler.ts'
import { retryAfterMs } from './leased-streams.ts'
import { lacksProof, proveFilters } from './proved-filters.ts'

export interface SeenParts {
  readonly leases: LeaseScheduler
  readonly callLimits: CallLimits
  /** Searches without Verify that devices are working on, of all requests of this gateway. */
  readonly turns: FairLimit
}

export interface SeenRequest {
  readonly user: string
  /** The queue shows a lease under this id. */
  readonly leaseId: string
  /** How long to wait for a stream. */
  readonly waitMs: number
  /** Ends the answer too, not only the wait for it. */
  readonly signal: AbortSignal
}

const WITHOUT_PATH = 'it does not have the path'

/** A device searches all its tables and sieves before it begins to answer, and reads 256 MiB between two lines. */
const SILENCE_MS = 120_000

/** Dispose it when it is not needed any more: that closes the connection, and frees the stream. */
export class SeenAnswer implements AsyncDisposable {
  readonly #device: string
  readonly #question: SeenQuestion
  readonly #request: SeenRequest
  readonly #stream: DeviceStream
  readonly #lease: Lease | undefined

  /**
   * Resolves when the device has begun to answer. Fails with seen-unsupported if it does not know how, with the errors of a device or of the
   * queue, or with the reason of the signal.
   */
  static async open(
    member: FleetMember,
    question: SeenQuestion,
    parts: SeenParts,
    request: SeenRequest,
  ): Promise<SeenAnswer> {
    const { name } = member.device
    try {
      return await (question.verify ? openVerified : openSearch)(member, question, parts, request)
    } catch (error) {
      request.signal.throwIfAborted()
      // Only the path can be missing.
      throw lacksProof(error) ? seenUnsupported(name, WITHOUT_PATH, error) : deviceFailure(name, error)
    }
  }

  constructor(
    { name }: Pick<Device, 'name'>,
    { question, request }: { readonly question: SeenQuestion; readonly request: SeenRequest },
    stream: DeviceStream,
    lease?: Lease,
  ) {
    this.#device = name
    this.#question = question
    this.#request = request
    this.#stream = stream
    this.#lease = lease
  }

  /** Part by part as they arrive, up to the last line, without which it fails. Fails like open(). */
  async *lines(): AsyncGenerator<readonly SeenLine[]> {
    const reader = new SeenReader(this.#device, this.#question)
    for await (const texts of this.#texts()) {
      const { lines, failure } = await this.#read(reader, texts)
      // The device has read what it had to: however slowly the rest is read, others may have its stream.
      if (lines.some((line) => !('checkedBytes' in line))) await this.#lease?.[Symbol.asyncDispose]()
      if (lines.length > 0) yield lines
      if (failure !== undefined) throw failure
    }
    reader.finish()
  }

  /** Long lists of many devices arrive at the same time: other requests get their turns in between. */
  async #read(reader: SeenReader, texts: readonly string[]): Promise<ReadLines> {
    const { signal, user } = this.#request
    using _turn = await READING.acquire(signal, user)
    const lines: SeenLine[] = []
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
    this.#stream[Symbol.dispose]()
    await this.#lease?.[Symbol.asyncDispose]()
  }

  /** The lines of each part that arrives. */
  async *#texts(): AsyncGenerator<readonly string[]> {
    const decoder = new TextDecoder()
    let rest = ''
    for (let read = await this.#stream.next(); read !== undefined; read = await this.#stream.next()) {
      const lines = (rest + decoder.decode(Buffer.concat(read.data), { stream: true })).split('\n')
      read.release()
      rest = lines.pop() ?? ''
      if (rest.length > LINE_MAX) lines.push(rest)
      yield lines
    }
    if (rest !== '') yield [rest]
  }
}

interface ReadLines {
  /** Those before the one that failed. */
  readonly lines: readonly SeenLine[]
  readonly failure: unknown
}

/** Of 256 spans a line has a quarter of it. What follows is no line of a search. */
const LINE_MAX = 65_536

/** Parts of answers whose lines are read in one turn of the event loop. */
const READING = new FairLimit({ places: 1 })

/** The places are those of the search itself: however slowly its result is read, others may search. */
async function openSearch(
  member: FleetMember,
  question: SeenQuestion,
  { callLimits, turns }: SeenParts,
  request: SeenRequest,
): Promise<SeenAnswer> {
  const { name } = member.device
  const { user, signal } = request
  using _turn = await turns.acquire(signal, user)
  const open = () => openStream(member, question, { user, signal })
  const stream = await callLimits.run({ device: name, user }, () => member.breaker.run(open))
  return new SeenAnswer(member.device, { question, request }, stream)
}

async function openVerified(
  member: FleetMember,
  question: SeenQuestion,
  { leases }: SeenParts,
  request: SeenRequest,
): Promise<SeenAnswer> {
  const { name } = member.device
  const { user, leaseId, waitMs, signal } = request
  member.breaker.check()
  const deadlineMs = performance.now() + waitMs
  const lease = await leases.acquire({ id: leaseId, devices: [name], class: 'bulk', user, waitMs, signal })
  const open = () =>
    member.breaker.run(() =>
      openStream(member, question, { user, signal: AbortSignal.any([signal, lease.lost]) }),
    )
  try {
    for (;;) {
      try {
        const stream = await open()
        lease.opened()
        return new SeenAnswer(member.device, { question, request }, stream, lease)
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

async function openStream(
  { device, client }: FleetMember,
  question: SeenQuestion,
  { user, signal }: Pick<SeenRequest, 'user' | 'signal'>,
): Promise<DeviceStream> {
  const { isForced } = question
  const late = new AbortController()
  const onLate = () => late.abort(deviceLate(device.name, 'begin to answer', SILENCE_MS))
  const timer = setTimeout(onLate, SILENCE_MS)
  const asking = { caller: callerLabel(user), signal: AbortSignal.any([signal, late.signal]) }
  try {
    if (isForced) await proveFilters(client, { device: device.name }, asking)
    return await client.openStream(seenTarget(question), {
      ...asking,
      readSize: ANSWER_READ_SIZE,
      silenceMs: SILENCE_MS,
      // For callers with a forced filter everything is read, and nothing is said of it before the end.
      mayPause: isForced,
      isForced,
    })
  } finally {
    clearTimeout(timer)
  }
}
