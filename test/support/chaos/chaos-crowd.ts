/** Clients that download continuously, each in its own way, and the results of their downloads. */
import { setTimeout as delay } from 'node:timers/promises'
import type { SeededRandom } from '../seeded-random.ts'
import { type ChaosEnd, type ChaosRequest, type ChaosResult, chaosDownload } from './chaos-client.ts'
import type { ChaosWorld } from './chaos-world.ts'

export interface CrowdDownload extends ChaosResult {
  readonly gateway: number
  readonly asked: ChaosRequest
}

/** Sizes in packets; a device plays 400 a second. Most are short, some outlast a lapsed lease. */
const SIZES = [20, 100, 200, 400, 800] as const
const LONG_SIZE = 6_000
const LONG_ONE_IN = 12
const REST_MS = 150
/** A load balancer would not send all clients to a gateway that is down. */
const AWAY_MS = 800

export class ChaosCrowd {
  readonly downloads: CrowdDownload[] = []
  readonly #world: ChaosWorld
  readonly #random: SeededRandom
  #leaving = false

  constructor(world: ChaosWorld, random: SeededRandom) {
    this.#world = world
    this.#random = random
  }

  /** Runs `clients` clients until `until` settles; resolves when all of them have ended. */
  async run(clients: number, until: Promise<void>): Promise<void> {
    const goHome = () => {
      this.#leaving = true
    }
    const stopped = until.then(goHome, goHome)
    await Promise.all(Array.from({ length: clients }, () => this.#client()))
    await stopped
    await until
  }

  /** Each client makes one more download and waits for it; returns the results. */
  async lastRound(clients: number, waitS: number): Promise<readonly CrowdDownload[]> {
    const patient = { waitS, leaveAfterMs: undefined, sleepMs: 0, packets: 200 }
    return Promise.all(
      Array.from({ length: clients }, () => this.#download({ ...this.#asked(), ...patient })),
    )
  }

  count(end: ChaosEnd): number {
    return this.downloads.filter((download) => download.end === end).length
  }

  async #client(): Promise<void> {
    while (!this.#leaving) {
      const download = await this.#download(this.#asked())
      this.downloads.push(download)
      // An unreachable gateway fails at once; no client repeats a request without a pause.
      if (download.end !== 'complete') await delay(download.end === 'unreachable' ? AWAY_MS : REST_MS)
    }
  }

  async #download(asked: Omit<ChaosRequest, 'url'>): Promise<CrowdDownload> {
    const gateway = this.#random.integer(0, this.#world.gateways.length - 1)
    const whole = { ...asked, url: this.#world.gateways[gateway]?.url ?? '' }
    return { ...(await chaosDownload(whole)), gateway, asked: whole }
  }

  #asked(): Omit<ChaosRequest, 'url'> {
    const random = this.#random
    const isLong = random.integer(1, LONG_ONE_IN) === 1
    const width = isLong ? 1 : random.pick([1, 1, 1, 1, 2, 2, 3, 4])
    const isLeaver = random.integer(1, 4) === 1
    return {
      devices: this.#devices(width),
      packets: isLong ? LONG_SIZE : random.pick(SIZES),
      waitS: random.pick([2, 5, 10, 15]),
      leaveAfterMs: isLeaver ? random.integer(0, 3_000) : undefined,
      sleepMs: random.integer(1, 6) === 1 ? random.integer(0, 2_000) : 0,
    }
  }

  #devices(width: number): readonly number[] {
    const chosen = new Set<number>()
    while (chosen.size < width) chosen.add(this.#random.integer(0, this.#world.deviceCount - 1))
    return [...chosen].sort((a, b) => a - b)
  }
}
