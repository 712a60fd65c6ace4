/**
 * A small world around the scheduler's model: requests of two replicas, what the devices count, and all possible next
 * steps in a state. One step is what the product does atomically (a script, or a message that arrives); whatever may
 * happen between two steps there may happen between them here.
 *
 * Devices report their number of readers, and refuse a stream above their limit. A request may arrive at any time, even
 * from a replica that has lapsed or died. If devices have no limit of their own (`unlimited`), so that only the
 * scheduler bounds their readers, the world assumes that a request sent by a replica reaches its device before the
 * replica's lease can lapse, and that a replica which is silent throughout a recovery from lost data has no streams.
 *
 * It always assumes that a request given up by its replica does not arrive, and that a closed stream is no longer
 * counted when its lease is released.
 */
import { LeaseModel, type ModelClass, type ModelOwned, type ModelRules } from './lease-model.ts'

export interface TaskPlan {
  readonly devices: readonly string[]
  readonly class: ModelClass
  readonly user: string
  readonly replica: string
}

export interface WorldPlan {
  readonly rules: ModelRules
  readonly tasks: readonly TaskPlan[]
  /** Crashes, pauses and restarts on one path. */
  readonly faults: number
  /** Devices accept any number of streams. */
  readonly unlimited?: boolean
  /** A stream only ends with the release of its lease: no device counts fewer readers than there are leases. */
  readonly releasesAtOnce?: boolean
}

/**
 * coming: granted, on its way to the device, which does not count it yet; refused: the device `busy` was full; ended:
 * the device has sent everything, the lease is still held.
 */
type Phase = 'new' | 'waiting' | 'coming' | 'refused' | 'streaming' | 'ended' | 'gone'

interface Task {
  phase: Phase
  tag: number
  seq: number
  attempt: number
  told: boolean
  busy: string
}

interface Probe {
  readonly device: string
  readonly begun: ReadonlySet<string>
  readonly suspects: ReadonlySet<string>
  /** Its answer. */
  readonly readers: number | undefined
}

export type Step = readonly [name: string, act: (world: LeaseWorld) => void]

export class LeaseWorld {
  readonly plan: WorldPlan
  model: LeaseModel
  readonly #tasks: Task[]
  readonly #replicas: Map<string, 'up' | 'paused' | 'dead'>
  #asserted = new Set<string>()
  #probe: Probe | undefined
  #faults: number
  /** Data was lost since the last recovery. */
  #lossy = false

  constructor(plan: WorldPlan) {
    this.plan = plan
    this.model = new LeaseModel(plan.rules)
    this.#tasks = plan.tasks.map(() => ({ phase: 'new', tag: 0, seq: 0, attempt: 0, told: false, busy: '' }))
    this.#replicas = new Map(plan.tasks.map(({ replica }) => [replica, 'up']))
    this.#faults = plan.faults
    for (const replica of this.#replicas.keys()) this.model.heartbeat(replica)
  }

  clone(): LeaseWorld {
    const copy = new LeaseWorld({ ...this.plan, tasks: [] })
    Object.assign(copy, { plan: this.plan, model: this.model.clone() })
    copy.#tasks.push(...this.#tasks.map((task) => ({ ...task })))
    for (const [replica, state] of this.#replicas) copy.#replicas.set(replica, state)
    copy.#asserted = new Set(this.#asserted)
    copy.#probe = this.#probe
    copy.#faults = this.#faults
    copy.#lossy = this.#lossy
    return copy
  }

  key(): string {
    const { device, begun = [], suspects = [], readers } = this.#probe ?? {}
    const probe = `${device} ${[...begun]} ${[...suspects]} ${readers}`
    return [
      this.model.key(),
      this.#tasks
        .map(({ phase, attempt, told, busy }) => phase + attempt + (told ? '!' : '') + busy)
        .join(' '),
      [...this.#replicas.values()].join(' '),
      [...this.#asserted].sort().join(' '),
      device === undefined ? '' : probe,
      this.#faults + (this.#lossy ? 'lossy' : ''),
    ].join('|')
  }

  /** All possible next steps. */
  steps(): Step[] {
    return [...this.peacefulSteps(), ...this.#faultSteps()]
  }

  /** Without new faults. */
  peacefulSteps(): Step[] {
    return [
      ...this.#tasks.flatMap((_, index) => this.#taskSteps(index)),
      ...[...this.#replicas.keys()].flatMap((replica) => this.#replicaSteps(replica)),
      ...this.#probeSteps(),
      ...(this.model.caps.size > 0
        ? [['restore', (world: LeaseWorld) => world.model.restore()] as const]
        : []),
      ...(this.#mayRecover() ? [['recovered', (world: LeaseWorld) => world.#recovered()] as const] : []),
    ]
  }

  /** No step is possible any more: nothing may be left. */
  endProblems(): string[] {
    const waiting = this.#tasks.filter(({ phase }) => phase !== 'gone').length
    // Without the last replica there is nothing to clean up; the next one will do it.
    if (![...this.#replicas.values()].includes('up')) return []
    const left = this.model.requests.size + this.model.times.size
    return waiting + left === 0
      ? []
      : [`at the end ${waiting} requests are not served, ${left} records are left`]
  }

  devices(): string[] {
    return [...new Set(this.plan.tasks.flatMap(({ devices }) => devices))]
  }

  /** The device's count. */
  readers(device: string): number {
    return this.#tasks.filter(
      ({ phase }, i) => phase === 'streaming' && this.#planOf(i).devices.includes(device),
    ).length
  }

  /** Requests that a device refused although nothing had failed. */
  refusedForNothing(): string[] {
    if (this.#faults < this.plan.faults) return []
    return this.#tasks.flatMap(({ phase }, i) => (phase === 'refused' ? [String(i)] : []))
  }

  /** Whether a request had been granted, even if its data is lost. */
  wasGranted(id: string): boolean {
    const request = this.model.requests.get(id)
    if (request !== undefined) return request.state !== 'w'
    const phase = this.#tasks[Number(id)]?.phase
    return phase !== 'new' && phase !== 'waiting'
  }

  #taskSteps(index: number): Step[] {
    const task = this.#taskOf(index)
    const { replica } = this.#planOf(index)
    const state = this.#replicas.get(replica)
    const isUp = state === 'up'
    const isLive = isUp && this.model.live.has(replica)
    const id = String(index)
    const steps: Step[] = []
    const add = (name: string, act: (world: LeaseWorld, task: Task) => void) =>
      steps.push([`${name} ${index}`, (world) => act(world, world.#taskOf(index))])
    if (task.phase === 'new' && isLive) add('enqueue', (world) => world.#enqueue(index))
    if (task.phase === 'new' && state === 'dead') add('never', (_, mine) => (mine.phase = 'gone'))
    if (task.phase === 'waiting' && isLive && this.#wakeOf(index) >= 0)
      add('deliver', (world) => world.#deliver(index))
    if (task.phase === 'waiting' && isUp) add('cancel', (world) => world.#release(index))
    // Otherwise it could be refused for ever while the explorer lets nothing else move.
    if (task.phase === 'coming' && (task.busy === '' || this.#fullOf(index) === undefined))
      add('arrive', (world) => world.#arrive(index))
    if (task.phase === 'refused' && isLive) add('requeue', (world) => world.#requeue(index))
    if (task.phase === 'streaming' && isLive && !task.told)
      add('told', (world, mine) => {
        mine.told = true
        world.model.opened(id)
      })
    // Noticed by the replica at once, which reopens it.
    if (task.phase === 'streaming' && isLive && task.told)
      add('break', (world, mine) => {
        Object.assign(mine, { phase: 'coming', told: false })
        world.model.reopening(id)
        // Reported again, so it has begun after the request to the device.
        const probe = world.#probe
        if (probe !== undefined) world.#probe = { ...probe, begun: probe.begun.difference(new Set([id])) }
      })
    if (task.phase === 'streaming' && state === 'dead') add('vanish', (_, mine) => (mine.phase = 'gone'))
    if (task.phase === 'streaming' && state !== 'dead' && !this.plan.releasesAtOnce)
      add('end', (_, mine) => (mine.phase = 'ended'))
    if (isUp && (task.phase === 'streaming' || task.phase === 'ended'))
      add('release', (world) => world.#release(index))
    return steps
  }

  #replicaSteps(replica: string): Step[] {
    const state = this.#replicas.get(replica)
    const isLive = this.model.live.has(replica)
    const steps: Step[] = []
    if (state === 'paused') steps.push([`resume ${replica}`, (world) => world.#replicas.set(replica, 'up')])
    const mayStillCome = this.#indexesOf(replica).some((i) => this.#taskOf(i).phase === 'coming')
    if (state !== 'up' && isLive && !(this.plan.unlimited && mayStillCome))
      steps.push([`lapse ${replica}`, (world) => world.model.lapse(replica)])
    const isForgotten = this.#indexesOf(replica).some(
      (i) => this.#taskOf(i).phase === 'waiting' && !this.model.requests.has(String(i)),
    )
    if (state === 'up' && (!isLive || isForgotten || (this.model.recovering && !this.#asserted.has(replica))))
      steps.push([`reassert ${replica}`, (world) => world.#reassert(replica)])
    return steps
  }

  #faultSteps(): Step[] {
    if (this.#faults === 0) return []
    const fault = (name: string, act: (world: LeaseWorld) => void): Step => [
      name,
      (world) => {
        world.#faults -= 1
        act(world)
      },
    ]
    const up = [...this.#replicas].filter(([, state]) => state === 'up').map(([replica]) => replica)
    return [
      ...up.map((replica) => fault(`crash ${replica}`, (world) => world.#crash(replica))),
      ...up.map((replica) => fault(`pause ${replica}`, (world) => world.#replicas.set(replica, 'paused'))),
      fault('restart', (world) => world.#restart(false)),
      fault('lose all', (world) => world.#restart(true)),
    ]
  }

  #probeSteps(): Step[] {
    if (![...this.#replicas.values()].includes('up')) return []
    const probe = this.#probe
    if (probe?.readers !== undefined) return [['clear', (world) => world.#clear(probe)]]
    if (probe !== undefined) return [['sample', (world) => world.#sample(probe)]]
    return this.devices()
      .filter((device) => this.#suspectsOn(device).length > 0)
      .map((device) => [`ask ${device}`, (world) => world.#ask(device)])
  }

  #enqueue(index: number): void {
    const task = this.#taskOf(index)
    const { replica, ...wanted } = this.#planOf(index)
    const request = this.model.enqueue({
      ...wanted,
      id: String(index),
      owner: replica,
      attempt: task.attempt,
    })
    if (request === 'lapsed') return
    Object.assign(task, {
      tag: request.tag,
      seq: request.seq,
      phase: request.state === 'g' ? 'coming' : 'waiting',
    })
  }

  #deliver(index: number): void {
    this.model.wakes.splice(this.#wakeOf(index), 1)
    this.#taskOf(index).phase = 'coming'
  }

  #arrive(index: number): void {
    const task = this.#taskOf(index)
    const full = this.#fullOf(index)
    if (full === undefined) task.phase = 'streaming'
    else if (this.#replicas.get(this.#planOf(index).replica) === 'dead') task.phase = 'gone'
    else Object.assign(task, { phase: 'refused', busy: full })
  }

  /** The device that would refuse the task's stream now. */
  #fullOf(index: number): string | undefined {
    if (this.plan.unlimited) return undefined
    return this.#planOf(index).devices.find((device) => this.readers(device) >= this.plan.rules.streams)
  }

  #requeue(index: number): void {
    const task = this.#taskOf(index)
    Object.assign(task, { phase: 'waiting', attempt: task.attempt + 1, told: false })
    this.model.requeue(String(index), task.busy, task.attempt)
    this.#dropWakes()
  }

  #release(index: number): void {
    this.#taskOf(index).phase = 'gone'
    this.model.release(String(index), this.#taskOf(index).attempt)
    this.#dropWakes()
  }

  #crash(replica: string): void {
    this.#replicas.set(replica, 'dead')
    for (const index of this.#indexesOf(replica)) {
      const task = this.#taskOf(index)
      // A dead replica's requests that are still in the network may arrive.
      if (task.phase !== 'coming' || this.plan.unlimited) task.phase = 'gone'
    }
    this.#dropWakes()
  }

  #restart(losesAll: boolean): void {
    if (losesAll) this.model.flush()
    else this.model.restart()
    this.#lossy ||= losesAll
    this.#asserted.clear()
    this.#probe = undefined
  }

  #reassert(replica: string): void {
    const hasLapsed = this.model.heartbeat(replica) === 'lapsed'
    for (const task of this.#indexesOf(replica).map((index) => this.#taskOf(index)))
      if (hasLapsed && task.phase === 'waiting' && !this.plan.rules.keepsAttempts) task.attempt += 1
    const owned = this.#indexesOf(replica).flatMap((index) => this.#ownedOf(index) ?? [])
    const states = this.model.reassert(replica, owned)
    // If one of them becomes a suspect again, it is younger than the request to the device.
    if (this.#probe !== undefined) {
      const told = new Set(owned.map(({ id }) => id))
      this.#probe = { ...this.#probe, suspects: this.#probe.suspects.difference(told) }
    }
    for (const [i, { id, kind }] of owned.entries()) {
      if (kind === 'waiting' && states[i] === 'g') this.#taskOf(Number(id)).phase = 'coming'
    }
    this.#dropWakes()
    this.model.pump()
    if (this.model.recovering) this.#asserted.add(replica)
  }

  #mayRecover(): boolean {
    if (!this.model.recovering) return false
    return [...this.#replicas].every(([replica, state]) => {
      if (state === 'up') return this.#asserted.has(replica)
      const isIdle = this.#indexesOf(replica).every(
        (i) => !['coming', 'streaming'].includes(this.#taskOf(i).phase),
      )
      return isIdle || !this.#lossy || !this.plan.unlimited
    })
  }

  #recovered(): void {
    this.#lossy = false
    this.#asserted.clear()
    this.model.recovered()
  }

  #ask(device: string): void {
    const begun = [...this.model.requests.values()].filter((request) => request.begun).map(({ id }) => id)
    const suspects = this.#suspectsOn(device)
    this.#probe = {
      device,
      begun: new Set(begun),
      suspects: new Set(suspects),
      readers: undefined,
    }
  }

  /** The device answers. */
  #sample(probe: Probe): void {
    this.#probe = { ...probe, readers: this.readers(probe.device) }
  }

  #clear({ device, begun, suspects, readers = 0 }: Probe): void {
    this.#probe = undefined
    this.model.clear(device, readers, { begun, suspects })
  }

  #suspectsOn(device: string): string[] {
    return [...this.model.requests.values()]
      .filter(({ state, devices }) => state === 's' && devices.includes(device))
      .map(({ id }) => id)
  }

  #ownedOf(index: number): ModelOwned | undefined {
    const { phase, tag, seq, attempt, told } = this.#taskOf(index)
    if (phase === 'new' || phase === 'gone') return undefined
    const { devices, class: requestClass, user } = this.#planOf(index)
    const kind = phase === 'waiting' ? 'waiting' : told ? 'open' : 'held'
    return { id: String(index), devices, class: requestClass, user, tag, seq, attempt, kind }
  }

  #wakeOf(index: number): number {
    return this.model.wakes.findIndex((wake) => wake.endsWith(` ${this.#taskOf(index).attempt} ${index}`))
  }

  /** A wake-up for a request that no longer waits, or waits in a later attempt, has no effect. */
  #dropWakes(): void {
    this.model.wakes = this.model.wakes.filter((wake) => {
      const [, attempt, id] = wake.split(' ').map(Number)
      const task = this.#taskOf(Number(id))
      return task.phase === 'waiting' && task.attempt === attempt
    })
  }

  #indexesOf(replica: string): number[] {
    return this.plan.tasks.flatMap((task, index) => (task.replica === replica ? [index] : []))
  }

  #taskOf(index: number): Task {
    const task = this.#tasks[index]
    if (task === undefined) throw new RangeError(`there is no task ${index}`)
    return task
  }

  #planOf(index: number): TaskPlan {
    const plan = this.plan.tasks[index]
    if (plan === undefined) throw new RangeError(`there is no task ${index}`)
    return plan
  }
}
