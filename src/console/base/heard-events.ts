/**
 * Events on the devices, which the gateway sends in one stream: the live view lists what the timeline marks. The
 * stream is open while one of the two is shown and visible; events that the gateway has retained come first.
 */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { useEffect, useState } from 'preact/hooks'
import { TEXTS } from '../texts.ts'
import { openAnswer, Problem } from './ask-gateway.ts'
import { pause } from './asked.ts'
import { nowNs } from './instants.ts'
import { untilSeen, whileSeen } from './seen.ts'

export interface FleetEvent {
  readonly key: string
  /** undefined: not about a single device. */
  readonly device: string | undefined
  readonly kind: string
  readonly atNs: bigint
  readonly facts: string
}

export interface HeardEvents {
  /** Newest first. */
  readonly events: readonly FleetEvent[]
  readonly isConnected: boolean
  /** Why the last connection ended. */
  readonly failure: unknown
  readonly fleet: FleetState | undefined
}

/** The fleet's state that the gateway sends to a new listener. */
export interface FleetState {
  /** Devices whose own events are not being received. */
  readonly silent: readonly { readonly device: string; readonly code: string }[]
}

interface Happened {
  readonly device: string
  readonly source: 'device' | 'gateway'
  readonly kind: string
  readonly atNs: string
  /** The device's own number; null: an event of the gateway. */
  readonly number: string | null
  readonly told: Readonly<Record<string, unknown>>
}

interface Gap {
  readonly device: string | null
  readonly missed: number | null
}

/** Kind of the row that says that some events are missing. */
export const GAP = 'gap'

/** The oldest are dropped. The gateway keeps no more than half of this. */
const KEPT_MAX = 4_000
const AGAIN_MS = 2_000
/** Many events arrive at once at the start, and the page is redrawn with each change. */
const SHOWN_EVERY_MS = 100

export class FleetEvents {
  #heard: HeardEvents = { events: [], isConnected: false, failure: undefined, fleet: undefined }
  readonly #byKey = new Map<string, FleetEvent>()
  readonly #listeners = new Set<(heard: HeardEvents) => void>()
  #lastId = '0'
  #connection: AbortController | undefined
  readonly #isFiltered: boolean
  #timer: ReturnType<typeof setTimeout> | undefined

  /** `isFiltered`: events count packets, and this session may only have those that pass a filter. */
  constructor({ isFiltered }: { readonly isFiltered: boolean }) {
    this.#isFiltered = isFiltered
    if (isFiltered)
      this.#heard = {
        ...this.#heard,
        failure: new Problem({ code: 'out-of-bounds', status: 0, detail: TEXTS.events.filtered }),
      }
  }

  get heard(): HeardEvents {
    return this.#heard
  }

  /** Listens until the returned function is called; all listeners share one connection. */
  listen(listener: (heard: HeardEvents) => void): () => void {
    this.#listeners.add(listener)
    if (this.#connection === undefined && !this.#isFiltered) {
      this.#connection = new AbortController()
      void this.#stayConnected(this.#connection.signal)
    }
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#connection?.abort()
      this.#connection = undefined
      this.#heard = { ...this.#heard, isConnected: false }
    }
  }

  async #stayConnected(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await untilSeen(signal)
      let failure: unknown
      try {
        await whileSeen(signal, (seen) => this.#hear(seen))
      } catch (error) {
        failure = error
      }
      if (signal.aborted) return
      // A browser allows few connections for all its tabs. Events that happen meanwhile are received when the page is
      // visible again.
      if (document.hidden) failure = undefined
      this.#show({ isConnected: false, failure })
      if (!document.hidden) await pause(AGAIN_MS, signal)
    }
  }

  async #hear(signal: AbortSignal): Promise<void> {
    const headers = { accept: 'text/event-stream' }
    const answer = await openAnswer(`v1/events?LastEventID=${encodeURIComponent(this.#lastId)}`, {
      signal,
      headers,
    })
    const reader = answer.body
      ?.pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream())
      .getReader()
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done) return
      this.#take(value.event ?? '', value.data)
      this.#lastId = value.id ?? this.#lastId
    }
  }

  #take(name: string, data: string): void {
    if (name === 'fleet')
      this.#heard = {
        ...this.#heard,
        isConnected: true,
        failure: undefined,
        fleet: JSON.parse(data) as FleetState,
      }
    if (name === 'happened') {
      const happened = JSON.parse(data) as Happened
      this.#keep(eventOf(happened))
      this.#heard = { ...this.#heard, fleet: changedBy(happened, this.#heard.fleet) }
    }
    if (name === 'gap') this.#keep(gapOf(JSON.parse(data) as Gap))
    this.#timer ??= setTimeout(() => this.#show(), SHOWN_EVERY_MS)
  }

  #keep(event: FleetEvent): void {
    this.#byKey.set(event.key, event)
  }

  #newestFirst(): readonly FleetEvent[] {
    const events = [...this.#byKey.values()].sort((a, b) => (a.atNs < b.atNs ? 1 : a.atNs > b.atNs ? -1 : 0))
    for (const { key } of events.splice(KEPT_MAX)) this.#byKey.delete(key)
    return events
  }

  #show(change: Partial<HeardEvents> = {}): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#heard = { ...this.#heard, ...change, events: this.#newestFirst() }
    for (const listener of this.#listeners) listener(this.#heard)
  }
}

/** The received events, while the component is mounted. */
export function useHeardEvents(events: FleetEvents): HeardEvents {
  const [heard, setHeard] = useState(events.heard)
  useEffect(() => events.listen(setHeard), [events])
  return heard
}

/** Whether a device's events are received is an event too. */
function changedBy(
  { device, source, kind, told }: Happened,
  fleet: FleetState | undefined,
): FleetState | undefined {
  if (fleet === undefined || source !== 'gateway' || !kind.startsWith('events-')) return fleet
  const others = fleet.silent.filter((one) => one.device !== device)
  return {
    ...fleet,
    silent: kind === 'events-heard' ? others : [...others, { device, code: String(told.code) }],
  }
}

function eventOf({ device, source, kind, atNs, number, told }: Happened): FleetEvent {
  const { TS: _at, Kind: _kind, ...facts } = told
  return {
    key: `${device} ${source} ${number ?? `${atNs} ${kind}`}`,
    device,
    kind,
    atNs: BigInt(atNs),
    facts: factText(facts),
  }
}

function gapOf({ device, missed }: Gap): FleetEvent {
  const atNs = nowNs()
  const facts = missed === null ? {} : { missed }
  return {
    key: `${GAP} ${device} ${atNs}`,
    device: device ?? undefined,
    kind: GAP,
    atNs,
    facts: factText(facts),
  }
}

function factText(facts: Readonly<Record<string, unknown>>): string {
  return Object.entries(facts)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('  ')
}
