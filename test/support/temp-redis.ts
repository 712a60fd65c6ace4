import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'

/** A real Redis on a Unix socket in a temporary folder, with its data kept over stop and start. */
export class TempRedis implements AsyncDisposable {
  readonly #folder: string
  #child: ChildProcess | undefined

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async create(): Promise<TempRedis> {
    const redis = new TempRedis(await mkdtemp(join(tmpdir(), 'capfleet-redis-')))
    await redis.start()
    return redis
  }

  /** For redis.url. */
  get url(): string {
    return join(this.#folder, 'redis.sock')
  }

  /** Starts the server and waits until it answers. */
  async start(): Promise<void> {
    const settings = `--port 0 --unixsocket ${this.url} --dir ${this.#folder} --appendonly yes --maxmemory-policy noeviction`
    this.#child = spawn('redis-server', [...settings.split(' '), '--save', ''], { stdio: 'ignore' })
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

  /** Every key but the two that live as long as the gateway: its heartbeat and the counters. */
  async leftovers(keyPrefix: string): Promise<readonly string[]> {
    const redis = new Redis(this.url)
    try {
      const keys = await redis.keys('*')
      return keys.filter((key) => key !== `{${keyPrefix}}:g` && key !== `{${keyPrefix}}:hb`).sort()
    } finally {
      redis.disconnect()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL')
    await rm(this.#folder, { recursive: true, force: true })
  }
}
