/**
 * Events on all devices, as they report them and as the gateway observes them, for any number of clients: each device
 * is listened to once, and only while a client wants its events.
 */
import { randomBytes } from 'node:crypto'
import type { CapfleetError } from '../../../shared/base/error.ts'
import type { Log } from '../../../shared/base/log.ts'
import type { Metrics } from '../../../shared/base/metrics.ts'
import { outsideOfRequests } from '../../../shared/base/request-context.ts'
import { formatEvent } from '../../../shared/http/server-sent-events.ts'
import type { Device } from '../../device/device.ts'
import { callerLabel } from '../../device/device-request.ts'
import type { Fleet, FleetMember } from '../fleet.ts'
import type { HealthReport } from '../health/device-health.ts'
import { DeviceFeed } from './device-feed.ts'
import type { EventBlock } from './event-blocks.ts'
import { EventReader, type ReaderOptions } from './event-reader.ts'
import { formatGap, formatHappened, type Happened, seenByGateway, toldByDevice } from './event-texts.ts'
import { type KeptEvent, KeptEvents } from './kept-events.ts'

export interface FleetEventsOptions {
  readonly fleet: Fleet
  readonly log: Log
  readonly metrics: Metrics
}

/** Where a client begins: now, with the retained events, or after the event of this id. */
export type EventsFrom = 'now' | 'kept' | { readonly id: string }

export type EventClient = Pick<ReaderOptions, 'wants' | 'onNews'> & { readonly from: EventsFrom }

interface Followed {
  readonly device: Device
  readonly kept: KeptEvents
  readonly feed: DeviceFeed
  /** Stops listening when no client has wanted it for a while. */
  leaving: NodeJS.Timeout | undefined
}

/** Reloading a page must not open all connections again. */
const LINGER_MS = 60_000
/** Maximum number of retained events that are sent to a client, the newest ones. */
const KEPT_MAX = 2_000
/** The connections to many devices are opened gradually, at this rate per second. */
const OPENED_PER_S = 500

export class FleetEvents implements Disposable {
  readonly #options: FleetEventsOptions
  /** Distinguishes the events of this process from those of others, and of its next run. */
  readonly #id = randomBytes(4).toString('hex')
  readonly #caller = callerLabel(`events of ${this.#id}`)
  readonly #followed = new Map<string, Followed>()
  readonly #readers = new Set<EventReader>()
  readonly #listening: Disposable
  readonly #missed
  #seq = 0

  constructor(options: FleetEventsOptions) {
    this.#options = options
    const { fleet, metrics } = options
    for (const member of fleet.members) this.#add(member)
    this.#listening = fleet.listen({
      replaced: () => this.#compare(),
      cameOrWent: (device, report) => this.#cameOrWent(device, report),
    })
    this.#missed = metrics.counter(
      'events_missed_total',
      'Events that clients of /v1/events missed because they were too slow',
    )
    metrics.figures(
      'event_feeds',
      'Devices whose events are followed, by whether their events arrive',
      ['state'],
      (set) => {
        const feeds = [...this.#followed.values()].map(({ feed }) => feed)
        set(feeds.filter((feed) => feed.isHeard).length, { state: 'heard' })
        set(feeds.filter((feed) => feed.failure !== undefined).length, { state: 'silent' })
      },
    )
  }

  /** Adds a client until it is disposed. */
  open({ wants, onNews, from }: EventClient): EventReader {
    const onLeave = (left: EventReader) => this.#left(left)
    const reader = new EventReader({ wants, onNews, takesOld: from !== 'now', onLeave })
    reader.push(this.#snapshot(reader))
    for (const text of from === 'now' ? [] : this.#keptSince(reader, from)) this.#push(reader, text)
    this.#readers.add(reader)
    this.#listen()
    return reader
  }

  [Symbol.dispose](): void {
    this.#listening[Symbol.dispose]()
    for (const followed of this.#followed.values()) this.#leave(followed)
  }

  #left(reader: EventReader): void {
    this.#readers.delete(reader)
    this.#listen()
  }

  /** The state of the devices that the client wants. */
  #snapshot(reader: EventReader): string {
    const seen = [...this.#followed.values()].filter(({ device }) => reader.wants(device))
    const down = seen.filter(
      ({ device: { name } }) => this.#options.fleet.find(name)?.health.report.reachable === false,
    )
    const silent = seen.flatMap(({ device: { name }, feed: { failure } }) =>
      failure === undefined ? [] : [{ device: name, code: failure.code }],
    )
    const shown = { devices: seen.length, down: down.map(({ device }) => device.name), silent }
    return formatEvent('fleet', JSON.stringify(shown))
  }

  #keptSince(reader: EventReader, from: Exclude<EventsFrom, 'now'>): readonly string[] {
    const seq = from === 'kept' ? 0 : this.#seqOf(from.id)
    const seen = [...this.#followed.values()].filter(({ device }) => reader.wants(device))
    const kept = seen.flatMap((followed): readonly KeptEvent[] => followed.kept.after(seq ?? 0))
    const newest = kept.sort((a, b) => a.seq - b.seq).slice(-KEPT_MAX)
    const gaps: string[] = []
    if (seq === undefined) gaps.push(formatGap({ device: null, missed: null }))
    else if (from !== 'kept')
      for (const { device, kept: events } of seen)
        if (events.hasLostAfter(seq)) gaps.push(formatGap({ device: device.name, missed: null }))
    if (newest.length < kept.length)
      gaps.push(formatGap({ device: null, missed: kept.length - newest.length }))
    return [...gaps, ...newest.map(({ text }) => text)]
  }

  /** Returns undefined if the event is not from this process. */
  #seqOf(id: string): number | undefined {
    const [, process, digits] = /^([0-9a-f]+)-(\d{1,15})$/.exec(id) ?? []
    const seq = Number(digits)
    return process === this.#id && seq <= this.#seq ? seq : undefined
  }

  /** Opens connections to exactly those devices that some client needs. */
  #listen(): void {
    const spreadMs = (this.#followed.size / OPENED_PER_S) * 1_000
    for (const followed of this.#followed.values()) {
      const isWanted = [...this.#readers].some((reader) => reader.wants(followed.device))
      if (isWanted) {
        clearTimeout(followed.leaving)
        followed.leaving = undefined
        // It continues after the request of this reader has ended.
        outsideOfRequests(() => followed.feed.start(Math.random() * spreadMs))
      } else followed.leaving ??= setTimeout(() => this.#leave(followed), LINGER_MS).unref()
    }
  }

  #leave(followed: Followed): void {
    clearTimeout(followed.leaving)
    followed.leaving = undefined
    followed.feed.stop()
  }

  /** Handles a change of the fleet's list of devices. */
  #compare(): void {
    const { members } = this.#options.fleet
    const present = new Set(members.map(({ device }) => device.name))
    for (const [name, followed] of this.#followed) {
      if (present.has(name)) continue
      this.#happened(followed, 'device-removed', {})
      this.#leave(followed)
      this.#followed.delete(name)
    }
    for (const member of members) {
      const known = this.#followed.get(member.device.name)
      if (known?.device === member.device) continue
      if (known !== undefined) this.#leave(known)
      this.#happened(
        this.#add(member, known?.kept),
        known === undefined ? 'device-added' : 'device-changed',
        {},
      )
    }
    this.#listen()
  }

  #add(member: FleetMember, kept = new KeptEvents()): Followed {
    const { device } = member
    const feed = new DeviceFeed({
      member,
      caller: this.#caller,
      onEvent: (block, isOld) => this.#told(followed, block, isOld),
      onState: (failure) => this.#heardOrNot(followed, failure),
      onUnheard: () => kept.loseAll(this.#seq),
    })
    const followed: Followed = { device, kept, feed, leaving: undefined }
    this.#followed.set(device.name, followed)
    return followed
  }

  #cameOrWent(device: Device, report: HealthReport): void {
    const followed = this.#followed.get(device.name)
    if (followed?.device !== device) return
    if (report.reachable === true) {
      this.#happened(followed, 'device-up', { version: report.version })
      followed.feed.hurry()
    } else this.#happened(followed, 'device-down', failureOf(report.error))
  }

  #heardOrNot(followed: Followed, failure: CapfleetError | undefined): void {
    if (failure !== undefined)
      this.#options.log.info('device.events-silent', { device: followed.device.name, ...failureOf(failure) })
    this.#happened(followed, failure === undefined ? 'events-heard' : 'events-silent', failureOf(failure))
  }

  #told(followed: Followed, block: EventBlock, isOld: boolean): void {
    const { name } = followed.device
    if (block.name === 'gap') this.#publish(followed, formatGap({ device: name, missed: null }), isOld)
    else this.#tell(followed, toldByDevice(block), isOld)
  }

  #happened(followed: Followed, kind: string, facts: object): void {
    this.#tell(followed, seenByGateway(kind, facts), false)
  }

  #tell(followed: Followed, happened: Happened, isOld: boolean): void {
    const id = `${this.#id}-${this.#seq + 1}`
    this.#publish(followed, formatHappened(id, followed.device.name, happened), isOld)
  }

  #publish({ device, kept }: Followed, text: string, isOld: boolean): void {
    this.#seq += 1
    kept.add({ seq: this.#seq, text })
    for (const reader of this.#readers)
      if (reader.wants(device) && (reader.takesOld || !isOld)) this.#push(reader, text)
  }

  #push(reader: EventReader, text: string): void {
    const missed = reader.push(text)
    if (missed > 0) this.#missed.inc(missed)
  }
}

function failureOf(error: CapfleetError | undefined): { readonly code?: string; readonly detail?: string } {
  return error === undefined ? {} : { code: error.code, detail: error.message }
}
