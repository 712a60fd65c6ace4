import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import { GatheredCalls } from './gathered-calls.ts'
import type { DeviceUse, LeaseClass, QueueRow } from './lease.ts'
import type { LeaseTimings } from './lease-timings.ts'

/** The scheduler's Lua scripts as typed calls. Each Lua file documents what it does and returns. */

/** Script -> the files that its text begins with. */
const ASKS = ['lease-rules', 'lease-records', 'lease-order'] as const
const CHANGES = [...ASKS, 'lease-changes'] as const
const SCRIPTS = {
  exchange: CHANGES,
  requeue: CHANGES,
  heartbeat: ASKS,
  tidy: CHANGES,
  clear: CHANGES,
  reassert: CHANGES,
  leave: CHANGES,
  cancel: ASKS,
  places: ASKS,
  counts: ['lease-rules'],
} as const
type ScriptName = keyof typeof SCRIPTS
type ScriptCall = (key: string, ...args: readonly (string | number)[]) => Promise<unknown>

/** Limits the running time of one script. */
const ASKS_A_SCRIPT = 64

export interface ScriptContext {
  readonly redis: Redis
  /** Keys are `{prefix}:...`. */
  readonly keyPrefix: string
  readonly replica: string
  readonly streamsPerDevice: number
  readonly timings: LeaseTimings
}

/** A request's place in the order; it is reported to Redis again if Redis has lost it. */
export interface QueueTicket {
  readonly tag: number
  readonly seq: number
  readonly enqueuedMs: number
}

/** One request as its owner knows it. */
export interface OwnedRequest extends QueueTicket {
  readonly id: string
  readonly devices: readonly string[]
  readonly class: LeaseClass
  readonly user: string
  /** "open": all of its streams have begun. */
  readonly kind: 'open' | 'held' | 'waiting'
  /** A number that increases with everything its owner requests; a grant of an earlier attempt is void. */
  readonly attempt: number
}

/** What is requested. A release returns the request of its attempt, or of an earlier one. */
export type ExchangeAsk =
  | (Pick<OwnedRequest, 'id' | 'devices' | 'class' | 'user' | 'attempt'> & { readonly kind: 'enqueue' })
  | (Pick<OwnedRequest, 'id' | 'attempt'> & { readonly kind: 'release' })

export interface Enqueued extends QueueTicket {
  readonly state: 'g' | 'w' | 'lapsed' | 'taken'
  readonly position: number
}

/** The answer to an enqueue (see Enqueued), or to a release, which has a state and zeros. */
export interface ExchangeReply extends QueueTicket {
  readonly state: Enqueued['state'] | Released
  readonly position: number
}

/** The state that a released request had, or "" if nothing was changed. */
type Released = 'w' | 'g' | 's' | ''

/**
 * What a heartbeat reports: received grants ("attempt id"), and ids of requests whose streams have all begun, or one
 * of whose streams is being reopened.
 */
export interface HeartbeatNews {
  readonly received: readonly string[]
  readonly opened: readonly string[]
  readonly reopening: readonly string[]
}

/** The state of a request that was reported again. */
export type Reasserted = Pick<OwnedRequest, 'id' | 'attempt'> & { readonly state: 'g' | 'w' }

export class LeaseScripts {
  readonly #context: ScriptContext
  readonly #gathered = new GatheredCalls((asks: readonly ExchangeAsk[]) => this.exchange(asks), ASKS_A_SCRIPT)

  constructor(context: ScriptContext) {
    this.#context = context
    for (const [name, shared] of Object.entries(SCRIPTS)) {
      const lua = [...shared, name].map(readScript).join('\n')
      context.redis.defineCommand(commandOf(name), { numberOfKeys: 1, lua })
    }
  }

  enqueue(request: Omit<ExchangeAsk & { readonly kind: 'enqueue' }, 'kind'>): Promise<Enqueued> {
    return this.#gathered.ask({ ...request, kind: 'enqueue' }) as Promise<Enqueued>
  }

  async release(id: string, attempt: number) {
    const { state } = await this.#gathered.ask({ id, attempt, kind: 'release' })
    return state as Released
  }

  /** Makes several requests in one script; enqueue() and release() are batched into it. */
  async exchange(asks: readonly ExchangeAsk[]): Promise<readonly ExchangeReply[]> {
    const replies = (await this.#call('exchange', JSON.stringify(asks.flatMap(askMembers)))) as string
    return asks.length === 0 ? [] : replies.split(',').map(exchangeReply)
  }

  /** `busy`: the device that answered that it is busy. */
  async requeue(id: string, busy: string, attempt: number, busyMs = this.#context.timings.busyMs) {
    const reply = await this.#call('requeue', id, busy, attempt, busyMs)
    const [state, position] = reply as ['w' | 'g' | '', number]
    return { state, position }
  }

  async heartbeat({ received = [], opened = [], reopening = [] }: Partial<HeartbeatNews> = {}) {
    const ttlMs = this.#context.timings.leaseTtlMs
    const counts = [received.length, opened.length]
    const reply = await this.#call('heartbeat', ttlMs, ...counts, ...received, ...opened, ...reopening)
    const [state, recoverUntil, granted] = reply as ['ok' | 'lapsed', string, string[]]
    return { state, recoverUntil, granted }
  }

  async tidy() {
    const reply = await this.#call('tidy', this.#context.timings.heartbeatMs)
    const [more, nowMs, suspected] = reply as [number, string, string[]]
    return { more: more === 1, nowMs: Number(nowMs), suspected }
  }

  /** `readers` is undefined if the device does not report it; `askedMs` is the `nowMs` that tidy() returned. */
  async clear(device: string, readers: number | undefined, askedMs: number): Promise<number> {
    const { suspectMs } = this.#context.timings
    return (await this.#call('clear', device, readers ?? '', askedMs, suspectMs)) as number
  }

  /**
   * With `ends` this is the last of everything that any gateway can have, and the recovery ends, unless there was a
   * worker.
   */
  async reassert(
    owned: readonly OwnedRequest[],
    options: { readonly ends: boolean } = { ends: false },
  ): Promise<readonly Reasserted[]> {
    const rows = owned.map((one) => [
      one.id,
      one.devices.join(','),
      one.class,
      one.user,
      one.kind,
      one.tag,
      one.seq,
      one.attempt,
      one.enqueuedMs,
    ])
    const states = await this.#call('reassert', JSON.stringify(rows), options.ends ? '1' : '0')
    return owned.map(({ id, attempt }, i) => ({ id, attempt, state: (states as ('g' | 'w')[])[i] ?? 'w' }))
  }

  /** Releases some requests and returns how many are left; call it until that is 0. */
  async leave(): Promise<number> {
    return (await this.#call('leave')) as number
  }

  /** The state of the request with these parts; nothing is sent about a suspect, or a request that does not exist. */
  async cancel(id: string, by: string, parts: readonly string[]): Promise<QueueRow['state'] | undefined> {
    const state = (await this.#call('cancel', id, by, ...parts)) as keyof typeof STATES | ''
    return state === '' ? undefined : STATES[state]
  }

  async places(ids: readonly string[]): Promise<readonly QueueRow[]> {
    return ((await this.#call('places', ...ids)) as PlaceReply[]).map(rowOf)
  }

  /** Streams in use, waiters and the lowered limit of each device, in the given order. */
  async counts(devices: readonly string[]): Promise<readonly DeviceUse[]> {
    const counts = (await this.#call('counts', ...devices)) as number[]
    return devices.map((_, i) => {
      const [used = 0, waiting = 0, limit = -1] = counts.slice(3 * i, 3 * i + 3)
      return { used, waiting, ...(limit < 0 ? {} : { limit }) }
    })
  }

  #call(name: ScriptName, ...args: readonly (string | number)[]): Promise<unknown> {
    const { redis, keyPrefix, replica, streamsPerDevice, timings } = this.#context
    const command = (redis as unknown as Record<string, ScriptCall>)[commandOf(name)]
    if (command === undefined) throw new Error(`script ${name} is not defined`)
    const { leaseTtlMs, openMs } = timings
    return command.call(redis, `{${keyPrefix}}:g`, replica, streamsPerDevice, leaseTtlMs, openMs, ...args)
  }
}

function askMembers(ask: ExchangeAsk): (string | number)[] {
  if (ask.kind === 'release') return [ask.attempt, ask.id, '', '', '']
  return [ask.attempt, ask.id, ask.devices.join(','), ask.class, ask.user]
}

function exchangeReply(text: string): ExchangeReply {
  const [state = '', position = 0, tag = 0, seq = 0, enqueuedMs = 0] = text.split(' ')
  return {
    state: state as ExchangeReply['state'],
    position: Number(position),
    tag: Number(tag),
    seq: Number(seq),
    enqueuedMs: Number(enqueuedMs),
  }
}

type PlaceReply = readonly [
  id: string,
  state: 'w' | 'g' | 's',
  devices: string,
  requestClass: LeaseClass,
  user: string,
  owner: string,
  enqueuedMs: string,
  grantedMs: string,
  position: number,
  etaMs: string,
]

const STATES = { g: 'streaming', s: 'suspect', w: 'waiting' } as const

function rowOf(reply: PlaceReply): QueueRow {
  const [id, state, devices, requestClass, user, replica, enqueuedMs, grantedMs, position, etaMs] = reply
  return {
    id,
    state: STATES[state],
    devices: devices.split(','),
    class: requestClass,
    user,
    replica,
    enqueuedMs: Number(enqueuedMs),
    grantedMs: grantedMs === '' ? undefined : Number(grantedMs),
    position: state === 'w' ? position : undefined,
    etaMs: etaMs === '' ? undefined : Number(etaMs),
  }
}

/** A name that no Redis command has. */
function commandOf(name: string): string {
  return `capfleet-${name}`
}

function readScript(name: string): string {
  return readFileSync(new URL(`${name}.lua`, import.meta.url), 'utf8')
}
