/**
 * The scheduler's rules once more, written to be obviously correct rather than fast: everything is recomputed from all
 * requests. Each method is a script in src/gateway/lease. The property test compares it with the scripts, the explorer
 * goes through all its states.
 */

export type ModelClass = 'interactive' | 'bulk'

export interface ModelRequest {
  readonly id: string
  /** Devices where the stream of a suspect has not been freed yet. */
  devices: readonly string[]
  readonly class: ModelClass
  readonly user: string
  readonly owner: string
  readonly tag: number
  readonly seq: number
  attempt: number
  state: 'w' | 'g' | 's'
  /** Its stream is known to have begun. */
  begun: boolean
}

/** What a replica reports about a request that it has. */
export interface ModelOwned
  extends Pick<ModelRequest, 'id' | 'devices' | 'class' | 'user' | 'tag' | 'seq' | 'attempt'> {
  readonly kind: 'open' | 'held' | 'waiting'
}

export interface ModelRules {
  readonly streams: number
  /** Planted mistakes, which a harness must detect. */
  readonly noReservation?: boolean
  readonly bulkReservesAll?: boolean
  readonly grantsWhileRecovering?: boolean
  readonly clearsRegardless?: boolean
  readonly countsYoungGrants?: boolean
  readonly regrantsSuspects?: boolean
  readonly releasesLaterAttempts?: boolean
  readonly reopensUntold?: boolean
  readonly lowersForEver?: boolean
  /** A lapsed replica does not continue to count its waiters' attempts. */
  readonly keepsAttempts?: boolean
}

/** Same as in exchange.lua. */
const BULK_COST_MOST = 8

const WEIGHTS = { interactive: 8, bulk: 1 } as const

export class LeaseModel {
  readonly rules: ModelRules
  requests = new Map<string, ModelRequest>()
  caps = new Map<string, number>()
  /** Per device with waiters: the largest tag granted, and the last tag of each flow. */
  times = new Map<string, { top: number; flows: Map<string, number> }>()
  live = new Set<string>()
  /** Grants of requests that waited, not yet delivered: "owner attempt id". Some arrive after a lapse of the owner. */
  wakes: string[] = []
  recovering = false
  #seq = 0
  #top = 0
  #before = 0
  #floor = 0

  constructor(rules: ModelRules) {
    this.rules = rules
  }

  clone(): LeaseModel {
    const copy = new LeaseModel(this.rules)
    for (const [id, request] of this.requests) copy.requests.set(id, { ...request })
    copy.caps = new Map(this.caps)
    for (const [device, { top, flows }] of this.times) copy.times.set(device, { top, flows: new Map(flows) })
    copy.live = new Set(this.live)
    copy.wakes = [...this.wakes]
    copy.recovering = this.recovering
    copy.#seq = this.#seq
    copy.#top = this.#top
    copy.#before = this.#before
    copy.#floor = this.#floor
    return copy
  }

  heartbeat(replica: string): 'ok' | 'lapsed' {
    if (this.live.has(replica)) return 'ok'
    this.live.add(replica)
    return 'lapsed'
  }

  /**
   * `seq`: the request's, larger than all before. `told`: its reported tag, which for bulk work depends on the
   * duration of streams and thus on the clock.
   */
  enqueue(
    wanted: Omit<ModelRequest, 'tag' | 'seq' | 'state' | 'begun'>,
    seq = this.#seq + 1,
    told?: number,
  ): ModelRequest | 'lapsed' {
    const known = this.requests.get(wanted.id)
    if (known !== undefined && known.attempt >= wanted.attempt) return known
    if (known !== undefined) this.release(wanted.id, known.attempt)
    if (!this.live.has(wanted.owner)) return 'lapsed'
    if (seq <= this.#seq) throw new RangeError(`${seq} comes after ${this.#seq}`)
    const flow = flowOf(wanted)
    let start = this.#floor
    for (const device of wanted.devices) {
      const time = this.times.get(device)
      start = Math.max(start, time?.top ?? 0, time?.flows.get(flow) ?? 0)
    }
    const tag = wanted.class === 'bulk' ? withinBulkCost(start, costOf(wanted), told) : start + costOf(wanted)
    const request: ModelRequest = { ...wanted, tag, seq, state: 'w', begun: false }
    this.#seq = seq
    this.requests.set(request.id, request)
    if (this.#mayGrant() && this.eligible(request)) {
      this.#grant(request)
    } else {
      this.#join(request)
    }
    return request
  }

  release(id: string, attempt: number): 'w' | 'g' | 's' | '' {
    const request = this.requests.get(id)
    if (request === undefined || (request.attempt > attempt && !this.rules.releasesLaterAttempts)) return ''
    this.requests.delete(id)
    this.#dropTimes()
    this.pump()
    return request.state
  }

  /** `busy`: the device that answered that it is busy. */
  requeue(id: string, busy: string, attempt: number): 'w' | 'g' | '' {
    const request = this.requests.get(id)
    if (request === undefined) return ''
    if (request.attempt < attempt) {
      request.attempt = attempt
      request.state = 'w'
      request.begun = false
      this.#join(request)
      this.caps.set(busy, Math.min(this.limit(busy), this.used(busy)))
      this.pump()
    }
    return request.state === 'w' ? 'w' : 'g'
  }

  opened(id: string): void {
    const request = this.requests.get(id)
    if (request?.state === 'g') request.begun = true
  }

  /** One of its streams is being reopened. */
  reopening(id: string): void {
    const request = this.requests.get(id)
    if (request?.state === 'g' && !this.rules.reopensUntold) request.begun = false
  }

  /** A replica was silent for too long. */
  lapse(replica: string): void {
    this.live.delete(replica)
    for (const request of [...this.requests.values()].filter(({ owner }) => owner === replica)) {
      if (request.state === 'w') this.requests.delete(request.id)
      else request.state = 's'
    }
    this.#dropTimes()
    this.pump()
  }

  /** Lowered limits end. */
  restore(): void {
    if (!this.rules.lowersForEver) this.caps.clear()
    this.pump()
  }

  /** Half a minute has passed. */
  moveFloor(): void {
    this.#floor = this.#before
    this.#before = this.#top
  }

  /** `begun`, `suspects`: ids that were in that state before the device was asked. */
  clear(
    device: string,
    readers: number,
    asked: { begun: ReadonlySet<string>; suspects: ReadonlySet<string> },
  ): number {
    const there = [...this.requests.values()].filter(({ devices }) => devices.includes(device))
    const settled = there.filter(
      ({ id, state, begun }) =>
        state === 'g' && ((begun && asked.begun.has(id)) || this.rules.countsYoungGrants),
    ).length
    const suspects = there.filter(({ id, state }) => state === 's' && asked.suspects.has(id))
    const kept = this.rules.clearsRegardless ? 0 : Math.max(0, readers - settled)
    const freed = suspects.sort(bySequence).slice(0, Math.max(0, suspects.length - kept))
    for (const request of freed) {
      request.devices = request.devices.filter((name) => name !== device)
      if (request.devices.length === 0) this.requests.delete(request.id)
    }
    this.pump()
    return freed.length
  }

  /** Redis was restarted with its data intact. */
  restart(): void {
    this.recovering = true
  }

  /** All data is lost. */
  flush(): void {
    this.requests.clear()
    this.caps.clear()
    this.times.clear()
    this.live.clear()
    this.wakes = []
    this.#seq = this.#top = this.#before = this.#floor = 0
    this.recovering = true
  }

  recovered(): void {
    this.recovering = false
    this.pump()
  }

  reassert(owner: string, owned: readonly ModelOwned[]): ('g' | 'w')[] {
    return owned.map((one) => {
      this.#seq = Math.max(this.#seq, one.seq)
      return this.#reassertOne(owner, one)
    })
  }

  used(device: string, requestClass?: ModelClass): number {
    let count = 0
    for (const request of this.requests.values()) {
      if (request.state === 'w' || !request.devices.includes(device)) continue
      if (requestClass === undefined || request.class === requestClass) count += 1
    }
    return count
  }

  limit(device: string): number {
    return this.caps.get(device) ?? this.rules.streams
  }

  waiters(device: string): ModelRequest[] {
    return [...this.requests.values()].filter(
      ({ state, devices }) => state === 'w' && devices.includes(device),
    )
  }

  /** Whether the request may start now. */
  eligible(request: ModelRequest): boolean {
    return request.devices.every((device) => {
      const limit = this.limit(device)
      const free = limit - this.used(device)
      const freeForBulk = bulkLimit(limit) - this.used(device, 'bulk')
      const { interactive, bulk } = this.#ahead(request, device)
      if (request.class === 'bulk') return bulk < freeForBulk && interactive + bulk < free
      return interactive + Math.min(bulk, this.rules.bulkReservesAll ? bulk : Math.max(0, freeForBulk)) < free
    })
  }

  position(request: ModelRequest): number {
    const before = request.devices.map((device) => {
      const freeForBulk = bulkLimit(this.limit(device)) - this.used(device, 'bulk')
      const { interactive, bulk } = this.#ahead(request, device)
      return interactive + (request.class === 'bulk' ? bulk : Math.min(bulk, Math.max(0, freeForBulk)))
    })
    return Math.max(...before) + 1
  }

  /** Starts every request that may start. */
  pump(): void {
    if (!this.#mayGrant()) return
    const waiting = [...this.requests.values()].filter(({ state }) => state === 'w')
    for (const request of waiting.sort(compare)) {
      if (!this.eligible(request)) continue
      request.state = 'g'
      this.wakes.push(`${request.owner} ${request.attempt} ${request.id}`)
      this.#grant(request)
    }
  }

  /** The same text for the same state, as long as an id always means the same request. */
  key(): string {
    const requests = [...this.requests.values()].map(
      ({ id, devices, tag, seq, attempt, state, begun }) =>
        `${id} ${devices} ${tag} ${seq} ${attempt} ${state}${begun ? '!' : ''}`,
    )
    const times = [...this.times].map(([device, { top, flows }]) => `${device} ${top} ${[...flows].sort()}`)
    return [
      requests.sort().join(),
      [...this.caps].sort().join(),
      times.sort().join(),
      [...this.live].sort().join(),
      [...this.wakes].sort().join(),
      `${this.recovering} ${this.#seq} ${this.#top} ${this.#before} ${this.#floor}`,
    ].join('|')
  }

  #mayGrant(): boolean {
    return !this.recovering || this.rules.grantsWhileRecovering === true
  }

  #ahead(request: ModelRequest, device: string): { interactive: number; bulk: number } {
    if (this.rules.noReservation) return { interactive: 0, bulk: 0 }
    const before = this.waiters(device).filter((other) => compare(other, request) < 0)
    const bulk = before.filter((other) => other.class === 'bulk').length
    return { interactive: before.length - bulk, bulk }
  }

  #grant(request: ModelRequest): void {
    request.state = 'g'
    request.begun = false
    this.#dropTimes()
    this.#top = Math.max(this.#top, request.tag)
    for (const device of request.devices) {
      const time = this.times.get(device)
      if (time === undefined || request.tag <= time.top) continue
      time.top = request.tag
      for (const [flow, tag] of time.flows) if (tag < request.tag) time.flows.delete(flow)
    }
  }

  #join(request: ModelRequest, floor = this.#floor): void {
    for (const device of request.devices) {
      const time = this.times.get(device) ?? { top: floor, flows: new Map<string, number>() }
      const flow = flowOf(request)
      time.flows.set(flow, Math.max(time.flows.get(flow) ?? 0, request.tag))
      this.times.set(device, time)
    }
  }

  #dropTimes(): void {
    for (const device of this.times.keys()) if (this.waiters(device).length === 0) this.times.delete(device)
  }

  #reassertOne(owner: string, one: ModelOwned): 'g' | 'w' {
    const known = this.requests.get(one.id)
    // The device's number of readers does not show which of two suspects is streaming.
    const isGranted =
      known?.state === 's'
        ? this.rules.regrantsSuspects
        : known?.state === 'g' && known.attempt >= one.attempt
    if (one.kind !== 'waiting' || isGranted) {
      this.requests.set(one.id, { ...ownedFields(one), owner, state: 'g', begun: one.kind === 'open' })
      this.#dropTimes()
      return 'g'
    }
    if (known?.state === 'w') {
      known.attempt = one.attempt
    } else {
      const waiter: ModelRequest = { ...ownedFields(one), owner, state: 'w', begun: false }
      this.requests.set(one.id, waiter)
      const start = one.tag - costOf(one)
      this.#join(waiter, start)
      if (known === undefined) {
        for (const device of one.devices) {
          const time = this.times.get(device)
          if (time !== undefined) time.top = Math.min(time.top, start)
        }
      }
    }
    return 'w'
  }
}

/** How many of a device's streams bulk may use. */
export function bulkLimit(limit: number): number {
  return limit > 1 ? limit - 1 : limit
}

/** The order of the queues. */
export function compare(a: ModelRequest, b: ModelRequest): number {
  if (a.tag !== b.tag) return a.tag - b.tag
  if (a.class !== b.class) return a.class === 'interactive' ? -1 : 1
  return a.seq - b.seq
}

/** Compares requests by the texts of their sequence numbers and ids. */
function bySequence(a: ModelRequest, b: ModelRequest): number {
  return a.seq - b.seq || (a.id < b.id ? -1 : 1)
}

function flowOf(request: Pick<ModelRequest, 'class' | 'user'>): string {
  return `${request.class}:${request.user}`
}

function costOf(request: Pick<ModelRequest, 'class' | 'devices'>): number {
  return (840 * request.devices.length) / WEIGHTS[request.class]
}

/** The reported tag of bulk work, if it is one that such a request may have. */
function withinBulkCost(start: number, cost: number, told = start + cost): number {
  const cheapest = start + cost
  const dearest = start + BULK_COST_MOST * cost
  if (told < cheapest || told > dearest) throw new RangeError(`${told} is not in ${cheapest} to ${dearest}`)
  return told
}

function ownedFields({ id, devices, class: requestClass, user, tag, seq, attempt }: ModelOwned) {
  return { id, devices, class: requestClass, user, tag, seq, attempt }
}
