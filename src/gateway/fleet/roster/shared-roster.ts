/**
 * Detects two mistakes in the devices of the programs that share a Redis: a name that leads to another URL elsewhere,
 * and an appliance that has two names. A device may then be given more than four streams, and return each packet
 * twice.
 */
import { createHash, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Redis } from 'ioredis'
import type { Log } from '../../../shared/base/log.ts'
import type { Metrics } from '../../../shared/base/metrics.ts'
import { connectRedis, type RedisTarget } from '../../redis/redis-connection.ts'
import type { Fleet } from '../fleet.ts'

export interface SharedRosterOptions {
  readonly fleet: Pick<Fleet, 'devices' | 'members'>
  readonly redis: RedisTarget
  readonly keyPrefix: string
  readonly log: Log
  readonly metrics: Metrics
  /** Default: a minute. */
  readonly everyMs?: number
}

/** What a program publishes to the others: no URLs, which not everyone with access to Redis may see. */
interface ToldRoster {
  readonly host: string
  /** Digests of URLs by device name. */
  readonly urls: Readonly<Record<string, string>>
}

const EVERY_MS = 60_000
/** A program that has not published its roster for this many rounds is gone. */
const ROUNDS_KEPT = 3
const DIGITS = 16
const SHARE = readFileSync(new URL('share-roster.lua', import.meta.url), 'utf8')

export class SharedRoster implements AsyncDisposable {
  readonly #options: SharedRosterOptions
  readonly #id = randomUUID()
  readonly #redis: Redis
  readonly #keys: readonly [ids: string, rosters: string]
  readonly #everyMs: number
  readonly #timer: NodeJS.Timeout
  #looking: Promise<void> | undefined
  /** Devices with another URL elsewhere, with the host of the program that has it. */
  #conflicts: ReadonlyMap<string, string> = new Map()
  #duplicates: ReadonlyMap<string, string> = new Map()

  /** Checks at once, and then periodically until disposed. */
  constructor(options: SharedRosterOptions) {
    const { redis, keyPrefix, log, metrics, everyMs = EVERY_MS } = options
    this.#options = options
    this.#everyMs = everyMs
    this.#keys = [`{${keyPrefix}}:rosters`, `{${keyPrefix}}:rosters:urls`]
    this.#redis = connectRedis(redis, 'commands', log)
    this.#redis.defineCommand('shareRoster', { numberOfKeys: 2, lua: SHARE })
    metrics.figures(
      'device_url_conflict',
      'Devices that have a different URL in the configuration of another gateway or worker on this Redis',
      ['device'],
      (set) => {
        for (const device of this.#conflicts.keys()) set(1, { device })
      },
    )
    metrics.figures(
      'device_duplicate',
      'Devices with the serial number of another device: one appliance under two names',
      ['device'],
      (set) => {
        for (const device of this.#duplicatesNow().keys()) set(1, { device })
      },
    )
    this.#look()
    this.#timer = setInterval(() => this.#look(), everyMs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
    const [ids, rosters] = this.#keys
    await this.#redis
      .multi()
      .zrem(ids, this.#id)
      .hdel(rosters, this.#id)
      .exec()
      .catch(() => undefined)
    this.#redis.disconnect()
  }

  #look(): void {
    this.#warnOfDuplicates()
    this.#looking ??= this.#compare()
      // Other parts of the program report an unreachable Redis.
      .catch((error: Error) => this.#options.log.debug('roster.not-shared', { message: error.message }))
      .finally(() => {
        this.#looking = undefined
      })
  }

  async #compare(): Promise<void> {
    const { fleet, log } = this.#options
    const urls = Object.fromEntries(fleet.devices.map(({ name, url }) => [name, digestOf(url)]))
    const own: ToldRoster = { host: hostname(), urls }
    const forMs = ROUNDS_KEPT * this.#everyMs
    const scripts = this.#redis as Scripts
    const others = await scripts.shareRoster(...this.#keys, this.#id, JSON.stringify(own), forMs)
    const conflicts = new Map<string, string>()
    for (const { host, urls: theirs } of others.map((text) => JSON.parse(text) as ToldRoster))
      for (const [device, url] of Object.entries(urls))
        if (theirs[device] !== undefined && theirs[device] !== url) conflicts.set(device, host)
    const before = this.#conflicts
    this.#conflicts = conflicts
    for (const [device, host] of conflicts)
      if (!before.has(device)) log.warn('fleet.url-conflict', { device, host })
  }

  #warnOfDuplicates(): void {
    const duplicates = this.#duplicatesNow()
    for (const [device, serial] of duplicates)
      if (!this.#duplicates.has(device)) this.#options.log.warn('fleet.same-appliance', { device, serial })
    this.#duplicates = duplicates
  }

  /** All devices whose serial number another one has too, along with that other one. */
  #duplicatesNow(): ReadonlyMap<string, string> {
    const bySerial = new Map<string, string[]>()
    const { members, devices } = this.#options.fleet
    const present = new Set(devices.map(({ name }) => name))
    for (const { device, health } of members) {
      const { serial } = health.report
      // A device that is leaving may have come back under another name.
      if (serial !== undefined && present.has(device.name))
        bySerial.set(serial, [...(bySerial.get(serial) ?? []), device.name])
    }
    const shared = [...bySerial].filter(([, names]) => names.length > 1)
    return new Map(shared.flatMap(([serial, names]) => names.map((name) => [name, serial] as const)))
  }
}

/** defineCommand() cannot add the types of the commands it defines. */
type Scripts = Redis & {
  shareRoster(...keysAndArguments: readonly (string | number)[]): Promise<readonly string[]>
}

function digestOf(url: URL): string {
  return createHash('sha256').update(url.href).digest('hex').slice(0, DIGITS)
}
