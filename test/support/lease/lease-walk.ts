/** Random commands to the scheduler's scripts in a real Redis and to the model, comparing both after each. */
import assert from 'node:assert/strict'
import { Redis } from 'ioredis'
import {
  type ExchangeAsk,
  type ExchangeReply,
  LeaseScripts,
} from '../../../src/gateway/lease/lease-scripts.ts'
import { LEASE_TIMINGS } from '../../../src/gateway/lease/lease-timings.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { dumpModel, dumpRedis } from './lease-dump.ts'
import { LeaseModel, type ModelOwned, type ModelRules } from './lease-model.ts'

const PREFIX = 'walk'
const DEVICES = ['a', 'b', 'c', 'd'] as const
const REPLICAS = ['x', 'y', 'z'] as const
const USERS = ['ann', 'ben', 'cy'] as const
const WAITING_MOST = 40
const STEPS_A_DUMP = 25
/** Nothing expires by itself: the walk moves the stored deadlines. */
const FAR_MS = 1e10
const TIMINGS = { ...LEASE_TIMINGS, leaseTtlMs: FAR_MS, openMs: FAR_MS, busyMs: FAR_MS, heartbeatMs: FAR_MS }

/** A replica's view of a request; it may be older than what Redis knows. */
type Known = ModelOwned & { readonly owner: string }

export class LeaseWalk {
  readonly #random: SeededRandom
  readonly #redis: Redis
  readonly #scripts: ReadonlyMap<string, LeaseScripts>
  readonly #model: LeaseModel
  readonly #known = new Map<string, Known>()
  /** Grants that their replica has not read yet. */
  readonly #onTheWay: string[] = []
  readonly counts = new Map<string, number>()
  #ids = 0
  #attempts = 0
  #steps = 0

  /** REQUIRES: nothing else uses the server. */
  constructor(url: string, random: SeededRandom, rules: ModelRules) {
    this.#random = random
    this.#redis = new Redis(url)
    this.#model = new LeaseModel(rules)
    const scripts = (replica: string) =>
      new LeaseScripts({
        redis: this.#redis,
        keyPrefix: PREFIX,
        replica,
        streamsPerDevice: rules.streams,
        timings: TIMINGS,
      })
    this.#scripts = new Map(REPLICAS.map((replica) => [replica, scripts(replica)]))
  }

  close(): void {
    this.#redis.disconnect()
  }

  /** Throws at the first difference. */
  async run(steps: number): Promise<void> {
    await this.#redis.flushall()
    this.#model.flush()
    for (let step = 0; step < steps; step += 1) {
      const [name, act] = this.#choose()
      this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
      this.#steps = step
      await act.call(this)
      await this.#compareWakes(name)
      if (step % STEPS_A_DUMP === 0) await this.#compareAll(name)
    }
    await this.#compareAll('end')
  }

  #choose(): readonly [string, () => Promise<void>] {
    if (this.#model.recovering && this.#random.next() < 0.1) return ['recovered', this.#recovered]
    let point = this.#random.next() * TOTAL
    for (const [name, weight, act] of ACTS) {
      point -= weight
      if (point < 0) return [name, act(this)]
    }
    return ['enqueue', this.enqueue]
  }

  async enqueue(): Promise<void> {
    if (this.#known.size > WAITING_MOST) return this.release()
    await this.#exchange(this.#random.pick(REPLICAS), [this.#newAsk()])
  }

  async release(): Promise<void> {
    const known = this.#pickKnown()
    if (known !== undefined) await this.#exchange(known.owner, [releaseOf(known)])
  }

  /** Several in one script; ids are released and reused. */
  async exchange(): Promise<void> {
    const owner = this.#random.pick(REPLICAS)
    const asks: ExchangeAsk[] = this.#known.size > WAITING_MOST ? [] : [this.#newAsk(), this.#newAsk()]
    for (const known of this.#known.values()) {
      const point = this.#random.next()
      if (known.owner !== owner || point > 0.5) continue
      if (point > 0.1) asks.push(releaseOf(known))
      if (point < 0.2) asks.push({ ...this.#newAsk(), id: known.id })
    }
    await this.#exchange(owner, asks)
  }

  /** Sometimes it reaches Redis twice. */
  async #exchange(owner: string, asks: readonly ExchangeAsk[]): Promise<void> {
    const scripts = this.#of(owner)
    this.#answer(owner, asks, await scripts.exchange(asks))
    if (this.#random.next() < 0.2) this.#answer(owner, asks, await scripts.exchange(asks))
  }

  #answer(owner: string, asks: readonly ExchangeAsk[], replies: readonly ExchangeReply[]): void {
    for (const [i, ask] of asks.entries()) {
      const reply = replies[i]
      assert.ok(reply)
      const { state, position, tag, seq } = reply
      if (ask.kind === 'release') {
        assert.equal(state, this.#model.release(ask.id, ask.attempt), ask.id)
        if (this.#known.get(ask.id)?.attempt === ask.attempt) this.#known.delete(ask.id)
        continue
      }
      const request = this.#model.enqueue({ ...ask, owner }, seq, tag)
      if (request === 'lapsed') {
        assert.equal(state, 'lapsed')
        this.#known.delete(ask.id)
        continue
      }
      const expected = [request.state === 'w' ? 'w' : 'g', request.tag, request.seq]
      assert.deepEqual([state, tag, seq], expected, ask.id)
      if (state === 'w') assert.equal(position, this.#model.position(request))
      const kind = state === 'w' ? 'waiting' : 'held'
      this.#known.set(ask.id, { ...ask, owner, tag: request.tag, seq, kind })
    }
  }

  #newAsk(): ExchangeAsk & { readonly kind: 'enqueue' } {
    const devices = DEVICES.filter(() => this.#random.next() < 0.3)
    if (devices.length === 0) devices.push(this.#random.pick(DEVICES))
    const requestClass = this.#random.next() < 0.4 ? 'bulk' : 'interactive'
    const id = `r${++this.#ids}`
    const user = this.#random.pick(USERS)
    return { kind: 'enqueue', id, devices, class: requestClass, user, attempt: ++this.#attempts }
  }

  async requeue(): Promise<void> {
    const known = this.#pickKnown((one) => one.kind !== 'waiting' && this.#model.live.has(one.owner))
    if (known === undefined) return
    const busy = this.#random.pick(known.devices)
    const attempt = ++this.#attempts
    const { state } = await this.#of(known.owner).requeue(known.id, busy, attempt)
    assert.equal(state, this.#model.requeue(known.id, busy, attempt))
    this.#known.set(known.id, { ...known, attempt, kind: 'waiting' })
  }

  async opened(): Promise<void> {
    const known = this.#pickKnown((one) => one.kind === 'held' && this.#model.live.has(one.owner))
    if (known === undefined) return
    await this.#of(known.owner).heartbeat({ opened: [known.id] })
    this.#model.opened(known.id)
    this.#known.set(known.id, { ...known, kind: 'open' })
  }

  async reopening(): Promise<void> {
    const known = this.#pickKnown((one) => one.kind === 'open' && this.#model.live.has(one.owner))
    if (known === undefined) return
    await this.#of(known.owner).heartbeat({ reopening: [known.id] })
    this.#model.reopening(known.id)
    this.#known.set(known.id, { ...known, kind: 'held' })
  }

  async deliver(): Promise<void> {
    const [replica, attempt, id] = (this.#onTheWay.shift() ?? '').split(' ')
    if (replica === undefined || id === undefined) return
    const known = this.#known.get(id)
    if (known?.kind === 'waiting' && known.attempt === Number(attempt))
      this.#known.set(id, { ...known, kind: 'held' })
  }

  async lapse(): Promise<void> {
    const replica = this.#random.pick(REPLICAS)
    if (!this.#model.live.has(replica)) return
    await this.#redis.zadd(this.#key('hb'), 1, replica)
    await this.#tidy()
    this.#model.lapse(replica)
  }

  async comeBack(): Promise<void> {
    const replica = this.#random.pick(REPLICAS)
    const { state } = await this.#of(replica).heartbeat()
    assert.equal(state, this.#model.heartbeat(replica))
    for (const known of this.#known.values()) {
      if (known.owner === replica && known.kind === 'waiting' && state === 'lapsed')
        this.#known.set(known.id, { ...known, attempt: ++this.#attempts })
    }
    const mine = [...this.#known.values()].filter(({ owner }) => owner === replica)
    const states = await this.#of(replica).reassert(mine.map((one) => ({ ...one, enqueuedMs: 0 })))
    assert.deepEqual(
      states.map((one) => one.state),
      this.#model.reassert(replica, mine),
    )
    await this.#tidy()
    this.#model.pump()
    for (const { id, state: told } of states) {
      const known = this.#known.get(id)
      if (told === 'g' && known?.kind === 'waiting') this.#known.set(id, { ...known, kind: 'held' })
    }
  }

  async clear(): Promise<void> {
    const suspects = [...this.#model.requests.values()].filter(({ state }) => state === 's')
    if (suspects.length === 0) return this.lapse()
    const device = this.#random.pick(this.#random.pick(suspects).devices)
    const isAsked = this.#random.next() < 0.8
    // Either everything that exists existed before the device was asked, or nothing.
    const askedMs = isAsked ? Date.now() + FAR_MS / 2 : 0
    const all = [...this.#model.requests.values()]
    const there = new Set(isAsked ? all.map(({ id }) => id) : [])
    const readers = this.#random.integer(0, 3)
    const begun = new Set(isAsked ? all.filter((one) => one.begun).map(({ id }) => id) : [])
    const freed = await this.#of('x').clear(device, readers, askedMs)
    assert.equal(freed, this.#model.clear(device, readers, { begun, suspects: there }))
  }

  async restore(): Promise<void> {
    for (const device of DEVICES) await this.#redis.zadd(this.#key('restore'), 'XX', 1, device)
    await this.#tidy()
    this.#model.restore()
  }

  async moveFloor(): Promise<void> {
    await this.#redis.hset(this.#key('g'), 'looked', 0)
    await this.#tidy()
    this.#model.moveFloor()
  }

  async restart(): Promise<void> {
    await this.#redis.hset(this.#key('g'), 'run', 'another')
    this.#model.restart()
  }

  async flush(): Promise<void> {
    await this.#redis.flushall()
    this.#model.flush()
    this.#onTheWay.length = 0
  }

  async #recovered(): Promise<void> {
    // First a script, which detects the restart.
    await this.#tidy()
    await this.#redis.hset(this.#key('g'), 'recover', 0)
    await this.#tidy()
    this.#model.recovered()
  }

  async #tidy(): Promise<void> {
    const looked = await this.#redis.hget(this.#key('g'), 'looked')
    if (looked !== '0') await this.#redis.hset(this.#key('g'), 'looked', Date.now() + FAR_MS)
    while ((await this.#of('x').tidy()).more);
  }

  #of(replica: string): LeaseScripts {
    const scripts = this.#scripts.get(replica)
    if (scripts === undefined) throw new Error(`no replica ${replica}`)
    return scripts
  }

  #key(name: string): string {
    return `{${PREFIX}}:${name}`
  }

  #pickKnown(wanted: (known: Known) => boolean = () => true): Known | undefined {
    const all = [...this.#known.values()].filter(wanted)
    return all.length === 0 ? undefined : this.#random.pick(all)
  }

  async #compareWakes(act: string): Promise<void> {
    const found: string[] = []
    for (const replica of REPLICAS) {
      const key = this.#key(`in:${replica}`)
      const [messages] = await Promise.all([this.#redis.lrange(key, 0, -1), this.#redis.del(key)])
      found.push(...messages.map((message) => `${replica} ${message}`))
    }
    assert.deepEqual(found.sort(), this.#model.wakes.sort(), `wakes after step ${this.#steps}, ${act}`)
    this.#onTheWay.push(...found)
    this.#model.wakes = []
  }

  async #compareAll(act: string): Promise<void> {
    const message = `state after step ${this.#steps}, ${act}`
    assert.deepEqual(await dumpRedis(this.#redis, PREFIX), dumpModel(this.#model), message)
  }
}

function releaseOf({ id, attempt }: Known): ExchangeAsk {
  return { kind: 'release', id, attempt }
}

type Act = (walk: LeaseWalk) => () => Promise<void>
const ACTS: readonly (readonly [string, number, Act])[] = [
  ['enqueue', 28, (walk) => walk.enqueue],
  ['release', 17, (walk) => walk.release],
  ['exchange', 5, (walk) => walk.exchange],
  ['deliver', 15, (walk) => walk.deliver],
  ['opened', 12, (walk) => walk.opened],
  ['reopening', 4, (walk) => walk.reopening],
  ['requeue', 4, (walk) => walk.requeue],
  ['clear', 4, (walk) => walk.clear],
  ['comeBack', 4, (walk) => walk.comeBack],
  ['restore', 2, (walk) => walk.restore],
  ['lapse', 1.5, (walk) => walk.lapse],
  ['moveFloor', 1, (walk) => walk.moveFloor],
  ['restart', 0.5, (walk) => walk.restart],
  ['flush', 0.2, (walk) => walk.flush],
]
const TOTAL = ACTS.reduce((sum, [, weight]) => sum + weight, 0)
