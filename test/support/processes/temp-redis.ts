import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { eventually } from '../eventually.ts'
import { NotedChanges } from '../noted-changes.ts'
import { refuseSecretsBelow } from '../suite-secrets.ts'

/**
 * A real Redis on a Unix socket in a temporary folder, which keeps its data across stop and start. Every write is in
 * the file before its answer, however slow the disk is (with `everysec`, a slow fsync delays writes by two seconds,
 * and SIGKILL loses them).
 */
export class TempRedis implements AsyncDisposable {
  readonly #folder: string
  readonly #settings: readonly string[]
  #child: ChildProcess | undefined

  private constructor(folder: string, settings: readonly string[]) {
    this.#folder = folder
    this.#settings = settings
  }

  static create(): Promise<TempRedis> {
    return TempRedis.#create([])
  }

  /** The only node of a Redis Cluster: it refuses commands whose keys lie in several slots. */
  static async createCluster(): Promise<TempRedis> {
    const redis = await TempRedis.#create(['--cluster-enabled', 'yes'])
    const client = new Redis(redis.url)
    await client.cluster('ADDSLOTSRANGE', 0, 16_383)
    const isReady = async () => /^cluster_state:ok/.test(await client.cluster('INFO'))
    await eventually(isReady, { message: 'the cluster is ready' })
    client.disconnect()
    return redis
  }

  static async #create(settings: readonly string[]): Promise<TempRedis> {
    const redis = new TempRedis(await mkdtemp(join(tmpdir(), 'capfleet-redis-')), settings)
    await redis.start()
    return redis
  }

  /** The URL for redis.url. */
  get url(): string {
    return join(this.#folder, 'redis.sock')
  }

  /** Starts the server and waits until it answers. */
  async start(): Promise<void> {
    const settings = `--port 0 --unixsocket ${this.url} --dir ${this.#folder} --appendonly yes --appendfsync no --maxmemory-policy noeviction --notify-keyspace-events KA`
    this.#child = spawn('redis-server', [...settings.split(' '), '--save', '', ...this.#settings], {
      stdio: 'ignore',
    })
    const probe = new Redis(this.url, { maxRetriesPerRequest: null, retryStrategy: () => 10 })
    probe.on('error', () => undefined)
    await probe.ping()
    probe.disconnect()
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined) return
    child.kill(signal)
    await once(child, 'exit')
  }

  /** Empties the server, and makes the scheduler treat it as one that has been in use, so that it grants at once. */
  async settle(keyPrefix: string): Promise<void> {
    // A failed test may have left it stopped.
    if (this.#child === undefined) await this.start()
    const redis = new Redis(this.url)
    await redis.flushall()
    redis.disconnect()
    await settleFresh(this.url, keyPrefix)
  }

  /** Waits until `condition` holds: checks at once, and again whenever a key has changed. REQUIRES: the server runs. */
  async until(condition: () => boolean | Promise<boolean>): Promise<void> {
    const watch = new Redis(this.url)
    const changes = new NotedChanges()
    watch.on('pmessage', () => changes.note())
    try {
      await watch.psubscribe('__keyspace@*__:*')
      await changes.until(condition)
    } finally {
      watch.disconnect()
    }
  }

  /** Every key except receipts and those that live as long as the gateways: heartbeats, counters, averages. */
  async leftovers(keyPrefix: string): Promise<readonly string[]> {
    const redis = new Redis(this.url)
    try {
      const keys = await redis.keys('*')
      const lasting = new Set(
        ['g', 'hb', 'hold', 'holdb', 'rosters', 'rosters:urls', 'clock'].map(
          (name) => `{${keyPrefix}}:${name}`,
        ),
      )
      // BullMQ writes one for each queue that is opened.
      const isMeta = (key: string) => key.startsWith(`{${keyPrefix}:jobs}:`) && key.endsWith(':meta')
      const isReceipt = (key: string) => key.startsWith(`{${keyPrefix}}:req:`)
      return keys.filter((key) => !lasting.has(key) && !isReceipt(key) && !isMeta(key)).sort()
    } finally {
      redis.disconnect()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL')
    await refuseSecretsBelow(this.#folder)
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/**
 * For a server without a scheduler so far: makes the first one treat the server as one that has been in use, so that
 * it grants at once. Otherwise it would wait for replicas that know more than Redis; there are none.
 */
export async function settleFresh(url: string, keyPrefix: string): Promise<void> {
  const redis = new Redis(url)
  const run = /run_id:(\w+)/.exec(await redis.info('server'))?.[1] ?? ''
  // Has no effect on a server in use.
  const key = `{${keyPrefix}}:g`
  if ((await redis.hsetnx(key, 'run', run)) === 1) await redis.hset(key, 'recover', '0')
  redis.disconnect()
}
