/** The costs of gateways, Redis and devices, by phase of a run. */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Redis } from 'ioredis'
import { cpuSeconds } from '../bench/sides/proxy-world.ts'
import type { LoopDelay } from './event-loop-meter.ts'
import type { ScaleWorld } from './scale-world.ts'

const SAMPLE_MS = 1_000
const MIB = 1_048_576

interface Costs {
  readonly atMs: number
  /** Processor seconds since their start. */
  readonly gateways: readonly number[]
  readonly devices: number
  readonly redis: number
  readonly client: number
  readonly redisCommands: number
  readonly answered: number
}

export interface PhaseFigures {
  readonly name: string
  readonly fromMs: number
  readonly toMs: number
  /** Number of busy processors, on average. */
  readonly gatewayCores: readonly number[]
  readonly deviceCores: number
  readonly redisCores: number
  readonly clientCores: number
  readonly gatewayMiB: readonly number[]
  readonly gatewayFds: readonly number[]
  readonly redisMiB: number
  readonly redisCommandsPerS: number
  /** Answers of devices that were not downloads. */
  readonly answersPerS: number
  /** The worst second of any gateway, and the median over all seconds of all gateways. */
  readonly loopMaxMs: number
  readonly loopP99Ms: number
}

export class ScaleMeter implements AsyncDisposable {
  readonly phases: PhaseFigures[] = []
  readonly #world: ScaleWorld
  readonly #redis: Redis
  readonly #timer: NodeJS.Timeout
  #sampling: Promise<void> = Promise.resolve()
  #gatewayMiB: number[] = []
  #gatewayFds: number[] = []
  #redisMiB = 0

  constructor(world: ScaleWorld) {
    this.#world = world
    this.#redis = new Redis(world.redis.url)
    this.#timer = setInterval(() => {
      this.#sampling = this.#sample()
    }, SAMPLE_MS)
  }

  /** Measures while `work` runs. */
  async phase(name: string, work: () => Promise<void>): Promise<void> {
    await this.#sample()
    this.#gatewayMiB = []
    this.#gatewayFds = []
    this.#redisMiB = 0
    const before = await this.#costs()
    await work()
    await this.#sample()
    const after = await this.#costs()
    const seconds = (after.atMs - before.atMs) / 1_000
    const perS = (of: (costs: Costs) => number) => (of(after) - of(before)) / seconds
    this.phases.push({
      name,
      fromMs: before.atMs,
      toMs: after.atMs,
      gatewayCores: before.gateways.map((_, index) => perS(({ gateways }) => gateways[index] ?? 0)),
      deviceCores: perS(({ devices }) => devices),
      redisCores: perS(({ redis }) => redis),
      clientCores: perS(({ client }) => client),
      gatewayMiB: this.#gatewayMiB,
      gatewayFds: this.#gatewayFds,
      redisMiB: this.#redisMiB,
      redisCommandsPerS: perS(({ redisCommands }) => redisCommands),
      answersPerS: perS(({ answered }) => answered),
      ...(await this.#loopDelays(before.atMs, after.atMs)),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#sampling
    this.#redis.disconnect()
  }

  async #sample(): Promise<void> {
    const usages = await Promise.all(this.#world.gateways.map((gateway) => gateway.usage()))
    for (const [index, { rssBytes, fds }] of usages.entries()) {
      this.#gatewayMiB[index] = Math.max(this.#gatewayMiB[index] ?? 0, rssBytes / MIB)
      this.#gatewayFds[index] = Math.max(this.#gatewayFds[index] ?? 0, fds)
    }
    const used = numberIn(await this.#redis.info('memory'), 'used_memory')
    this.#redisMiB = Math.max(this.#redisMiB, used / MIB)
  }

  async #costs(): Promise<Costs> {
    const { gateways, hosts } = this.#world
    const info = await this.#redis.info()
    const states = await Promise.all(hosts.map((host) => host.state()))
    const { user, system } = process.cpuUsage()
    return {
      atMs: Date.now(),
      gateways: gateways.map(({ pid }) => cpuSeconds(pid)),
      devices: hosts.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0),
      redis: numberIn(info, 'used_cpu_user') + numberIn(info, 'used_cpu_sys'),
      client: (user + system) / 1e6,
      redisCommands: numberIn(info, 'total_commands_processed'),
      answered: states.reduce((sum, { answered }) => sum + answered, 0),
    }
  }

  async #loopDelays(fromMs: number, toMs: number): Promise<{ loopMaxMs: number; loopP99Ms: number }> {
    const texts = await Promise.all(
      this.#world.gateways.map((_, index) => readFile(this.#world.delaysPath(index), 'utf8')),
    )
    const lines = texts
      .flatMap((text) => text.trim().split('\n'))
      .map((line) => JSON.parse(line) as LoopDelay)
      .filter(({ atMs }) => atMs > fromMs && atMs <= toMs)
    return {
      loopMaxMs: Math.max(0, ...lines.map(({ maxMs }) => maxMs)),
      loopP99Ms: quantile(
        lines.map(({ p99Ms }) => p99Ms),
        0.5,
      ),
    }
  }
}

/** NaN for an empty list. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

function numberIn(info: string, name: string): number {
  return Number(new RegExp(`^${name}:([0-9.]+)`, 'm').exec(info)?.[1])
}

/** The load of the machine, for all its processes. */
export function loadAverage(): number {
  return Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0])
}
