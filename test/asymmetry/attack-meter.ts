/** Runs attacks on stands, beside an honest user, and reports the observations. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Scale, Spending } from './attack.ts'
import type { AttackerFacts, AttackOrder } from './attacker-program.ts'
import { HelperProcess } from './helper-process.ts'
import type { HonestReport } from './honest-user.ts'
import type { HonestOrder } from './honest-user-program.ts'
import { cpuSecondsOf, isAlive, MemoryPeak, machineSeconds, residentMibOf } from './process-usage.ts'
import type { Stand } from './stand.ts'
import { failuresOf, type Measured, type Prices } from './verdict.ts'

export interface Timings {
  /** Duration of one attack. */
  readonly attackMs: number
  /** Between the end of an attack and the last measurement of memory. */
  readonly afterMs: number
  readonly quietMs: number
  /** Duration of each price measurement. */
  readonly priceMs: number
  /** Programs that still compute this long after an attack are given up. */
  readonly restMs: number
}

/** A stand that is not attacked. */
export interface Quiet {
  readonly felt: HonestReport
  /** Our CPU seconds for one request of the honest user, including background work. */
  readonly cpuSecondsPerRequest: number
  readonly prices: Prices
}

interface HonestUse {
  readonly spending: Spending
  readonly cpuSeconds: number
}

const HONEST_TRIES = 10
/** A helper that exceeds its own time limits is broken. */
const HELPER_GRACE_MS = 120_000
const REST_LOOK_MS = 250
/** Share of one core: idle programs use less than this for their background work. */
const REST_SHARE = 0.3

export class AttackMeter implements AsyncDisposable {
  readonly deviceUrl: string
  readonly #attacker: HelperProcess<AttackOrder, Spending>
  readonly #honest: HelperProcess<HonestOrder, HonestReport>
  readonly #timings: Timings
  readonly #scale: Scale

  private constructor(
    attacker: { readonly helper: HelperProcess<AttackOrder, Spending>; readonly facts: AttackerFacts },
    honest: HelperProcess<HonestOrder, HonestReport>,
    { timings, scale }: { readonly timings: Timings; readonly scale: Scale },
  ) {
    this.#attacker = attacker.helper
    this.deviceUrl = attacker.facts.deviceUrl
    this.#honest = honest
    this.#timings = timings
    this.#scale = scale
  }

  static async start(options: { readonly timings: Timings; readonly scale: Scale }): Promise<AttackMeter> {
    const attacker = await HelperProcess.start<AttackOrder, Spending, AttackerFacts>('attacker-program.ts')
    const honest = await HelperProcess.start<HonestOrder, HonestReport, object>('honest-user-program.ts')
    return new AttackMeter(attacker, honest.helper, options)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#attacker[Symbol.asyncDispose]()
    await this.#honest[Symbol.asyncDispose]()
  }

  /** Prices first: measuring them also brings the programs into their usual state. */
  async quiet(stand: Stand): Promise<Quiet> {
    const calls = await this.#honestUse(stand, 'control-calls')
    const download = await this.#honestUse(stand, 'plain-download')
    const prices = {
      byte: calls.cpuSeconds / (calls.spending.sentBytes + calls.spending.receivedBytes),
      streamSecond: download.cpuSeconds / download.spending.streamSeconds,
    }
    const pids = allPids(stand)
    const before = cpuSecondsOf(pids)
    await this.#askHonest({ kind: 'begin', stand })
    await delay(this.#timings.quietMs)
    const felt = await this.#askHonest({ kind: 'end' })
    const failures = failuresOf(felt)
    if (failures.length > 0) throw new Error(`it fails before it is attacked: ${failures.join('; ')}`)
    return { felt, cpuSecondsPerRequest: (cpuSecondsOf(pids) - before) / requestsOf(felt), prices }
  }

  async attack(name: string, stand: Stand, quiet: Quiet): Promise<Measured> {
    const { attackMs, afterMs } = this.#timings
    const pids = allPids(stand)
    const quietMib = residentMibOf(stand.attackedPid)
    const beforeSeconds = cpuSecondsOf(pids)
    const beforeForeign = foreignSeconds()
    const startMs = performance.now()
    const memory = new MemoryPeak(stand.attackedPid)
    await this.#askHonest({ kind: 'begin', stand })
    const spending = await this.#askAttacker({ name, stand, scale: this.#scale, limitMs: attackMs })
    await delay(afterMs)
    const stayMib = residentMibOf(stand.attackedPid) - quietMib
    const felt = await this.#askHonest({ kind: 'end' })
    const foreignCores = (foreignSeconds() - beforeForeign) / ((performance.now() - startMs) / 1_000)
    const isRestless = !(await this.#rests(pids))
    const honestSeconds = requestsOf(felt) * quiet.cpuSecondsPerRequest
    return {
      spending,
      cpuSeconds: Math.max(0, cpuSecondsOf(pids) - beforeSeconds - honestSeconds),
      peakMib: memory.stop() - quietMib,
      stayMib,
      felt,
      foreignCores: Math.max(0, foreignCores),
      isDead: !isAlive(stand.attackedPid),
      isRestless,
    }
  }

  /** Until the attack has had an effect: on a busy machine nothing may happen in a short time. */
  async #honestUse(stand: Stand, name: string): Promise<HonestUse> {
    const pids = allPids(stand)
    const order = { name, stand, scale: this.#scale, limitMs: this.#timings.priceMs }
    const before = cpuSecondsOf(pids)
    for (let tries = 0; tries < HONEST_TRIES; tries += 1) {
      const spending = await this.#askAttacker(order)
      const isDone = spending.streamSeconds > 0 || (name === 'control-calls' && spending.receivedBytes > 0)
      if (isDone) return { spending, cpuSeconds: cpuSecondsOf(pids) - before }
    }
    throw new Error(`${name} came to nothing at ${stand.url}`)
  }

  /** Whether the programs stop computing in time. */
  async #rests(pids: readonly number[]): Promise<boolean> {
    const endMs = performance.now() + this.#timings.restMs
    for (let before = cpuSecondsOf(pids); performance.now() < endMs; ) {
      await delay(REST_LOOK_MS)
      const now = cpuSecondsOf(pids)
      if (now - before <= (REST_SHARE * REST_LOOK_MS) / 1_000) return true
      before = now
    }
    return false
  }

  #askAttacker(order: AttackOrder): Promise<Spending> {
    return this.#attacker.ask(order, order.limitMs + HELPER_GRACE_MS)
  }

  #askHonest(order: HonestOrder): Promise<HonestReport> {
    return this.#honest.ask(order, HELPER_GRACE_MS)
  }
}

/** Processor time of the machine outside this run, whose programs are all children of this process. */
function foreignSeconds(): number {
  return machineSeconds() - cpuSecondsOf([process.pid])
}

function allPids({ attackedPid, behindPids }: Stand): readonly number[] {
  return [attackedPid, ...behindPids]
}

function requestsOf(report: HonestReport): number {
  return Object.values(report).reduce((sum, { latenciesMs }) => sum + latenciesMs.length, 0)
}
