/** The events that one device reports itself, over one connection for all listeners. */
import { setTimeout as delay } from 'node:timers/promises'
import type { CapfleetError } from '../../../shared/base/error.ts'
import { deviceBrokeOff, deviceFailure, deviceProtocol } from '../../device/device-failure.ts'
import { MalformedAnswer } from '../../device/response-head.ts'
import type { FleetMember } from '../fleet.ts'
import { type EventBlock, EventBlocks } from './event-blocks.ts'
import { EventPace } from './event-pace.ts'

export interface FeedOptions {
  readonly member: Pick<FleetMember, 'client' | 'breaker' | 'health'>
  /** Label of the gateway, which is sent to the device. */
  readonly caller: string
  /** `isOld`: it happened before anyone was listening. */
  readonly onEvent: (block: EventBlock, isOld: boolean) => void
  /** Called when the device cannot be listened to any more, or (undefined) can again. */
  readonly onState: (failure: CapfleetError | undefined) => void
  /** Called when so much happened while nobody was listening that it is not fetched. */
  readonly onUnheard: () => void
}

/** New listeners get the events of the last hour. */
const BACKLOG_MS = 3_600_000
/** Events that arrive later than this after the first connection are not backlog, whatever the device's clock says. */
const BACKLOG_TIME_MS = 10_000
/** capfleet devices send a keep-alive every 15 s. */
const SILENCE_MAX_MS = 45_000
const PAUSE_MS = 500
const PAUSE_MAX_MS = 60_000
/** A connection that lasted this long counts as good. */
const GOOD_MS = 10_000
/** A single failure may be the restart of a device. */
const FAILURES_OF_SILENCE = 2
const EVENT_NUMBER = /^\d{1,15}$/

export class DeviceFeed {
  readonly #options: FeedOptions
  #listening: AbortController | undefined
  #hurry = new AbortController()
  /** The newest event that was received; devices number their events by epoch milliseconds. */
  #newest: number | undefined
  #hasToldAny = false
  #isHeard = false
  #failure: CapfleetError | undefined

  constructor(options: FeedOptions) {
    this.#options = options
  }

  get isHeard(): boolean {
    return this.#isHeard
  }

  /** Why it cannot be listened to. */
  get failure(): CapfleetError | undefined {
    return this.#failure
  }

  /** Listens, starting now or after `delayMs`, until stop(). */
  start(delayMs: number): void {
    if (this.#listening !== undefined) return
    this.#listening = new AbortController()
    void this.#listen(this.#listening.signal, delayMs)
  }

  stop(): void {
    this.#listening?.abort()
    this.#listening = undefined
    this.#isHeard = false
    this.#failure = undefined
  }

  /** The device is back: reconnect now instead of later. */
  hurry(): void {
    this.#hurry.abort()
  }

  async #listen(signal: AbortSignal, delayMs: number): Promise<void> {
    await pause(delayMs, [signal])
    const startedMs = Date.now()
    this.#skipUnheard(startedMs)
    for (let failures = 0; !signal.aborted; ) {
      const beganMs = performance.now()
      const failure = await this.#hear(startedMs, signal)
      if (signal.aborted) return
      this.#options.member.breaker.suspect(failure)
      failures = performance.now() - beganMs > GOOD_MS ? 1 : failures + 1
      this.#isHeard = false
      if (failures >= FAILURES_OF_SILENCE) this.#fall(failure)
      const pauseMs = Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** failures) * (0.75 + Math.random() / 2)
      await pause(pauseMs, [signal, this.#hurry.signal])
      this.#hurry = new AbortController()
    }
  }

  #skipUnheard(startedMs: number): void {
    const oldest = startedMs - BACKLOG_MS
    if (this.#newest !== undefined && this.#newest >= oldest) return
    if (this.#newest !== undefined) this.#options.onUnheard()
    this.#newest = oldest
    this.#hasToldAny = false
  }

  /** Returns why it ended. */
  async #hear(startedMs: number, signal: AbortSignal): Promise<CapfleetError> {
    const { client, breaker } = this.#options.member
    const { name } = client.device
    try {
      breaker.check()
      const target = `/api/v1/system/events?LastEventID=${this.#newest}`
      const options = { caller: this.#options.caller, silenceMs: SILENCE_MAX_MS, signal }
      using answer = await client.openLive(target, options)
      this.#rise()
      const blocks = new EventBlocks()
      const pace = new EventPace()
      for (let read = await answer.next(); read !== undefined; read = await answer.next()) {
        const found = blocks.push(Buffer.concat(read.data))
        read.release()
        for (const block of found) if (!signal.aborted) this.#take(block, startedMs)
        await pause(pace.pauseMs(found.length), [signal])
      }
      return deviceBrokeOff(name)
    } catch (error) {
      return error instanceof MalformedAnswer
        ? deviceProtocol(name, error.message)
        : deviceFailure(name, error)
    }
  }

  #take(block: EventBlock, startedMs: number): void {
    // The connection named a last event that nobody has received, so this gap is not a real one.
    if (block.name === 'gap' && !this.#hasToldAny) return
    this.#hasToldAny = true
    const number = EVENT_NUMBER.test(block.id) ? Number(block.id) : undefined
    this.#newest = number ?? this.#newest
    this.#options.onEvent(block, this.#isOld(number, startedMs))
  }

  #isOld(number: number | undefined, startedMs: number): boolean {
    if (number === undefined || Date.now() - startedMs > BACKLOG_TIME_MS) return false
    const aheadMs = Number((this.#options.member.health.report.clock?.offsetNs ?? 0n) / 1_000_000n)
    return number - aheadMs < startedMs
  }

  #rise(): void {
    this.#isHeard = true
    if (this.#failure === undefined) return
    this.#failure = undefined
    this.#options.onState(undefined)
  }

  #fall(failure: CapfleetError): void {
    const isNew = this.#failure === undefined
    this.#failure = failure
    if (isNew) this.#options.onState(failure)
  }
}

/** Waits; resolves early if a signal aborts. */
async function pause(ms: number, signals: readonly AbortSignal[]): Promise<void> {
  if (ms <= 0) return
  await delay(ms, undefined, { signal: AbortSignal.any([...signals]), ref: false }).catch(() => undefined)
}
