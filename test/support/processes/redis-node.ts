/** A Redis server or a Sentinel on a TCP port of this machine, as one of several. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ConnectionOptions } from 'node:tls'
import { Redis } from 'ioredis'
import { freePort } from './temp-proxy.ts'

interface Access {
  readonly tls?: ConnectionOptions
  readonly password?: string
}

export interface RedisNodeOptions {
  /** Contains its files; the caller removes it. */
  readonly folder: string
  readonly name: string
  /** Lines of redis.conf in addition to the port. */
  readonly settings: readonly string[]
  readonly isSentinel?: boolean
  /** Makes it accept TLS only. Paths of PEM files; clients also need a certificate of `ca`. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string }
  /** Credentials needed to check whether it answers. */
  readonly access?: Access
}

export class RedisNode implements AsyncDisposable {
  readonly port: number
  readonly #child: ChildProcess

  private constructor(port: number, child: ChildProcess) {
    this.port = port
    this.#child = child
  }

  /** Resolves when it answers. */
  static async start(options: RedisNodeOptions): Promise<RedisNode> {
    const { name, isSentinel = false, tls, access = {} } = options
    const folder = join(options.folder, name)
    await mkdir(folder, { recursive: true })
    const port = await freePort()
    const encrypted = tls && [
      `tls-port ${port}`,
      `tls-cert-file ${tls.cert}`,
      `tls-key-file ${tls.key}`,
      `tls-ca-cert-file ${tls.ca}`,
      'tls-replication yes',
    ]
    const lines = [
      `port ${tls === undefined ? port : 0}`,
      ...(encrypted ?? []),
      `dir ${folder}`,
      ...(isSentinel ? [] : ['save ""', 'maxmemory-policy noeviction', 'repl-diskless-sync-delay 0']),
      ...options.settings,
    ]
    const config = join(folder, 'redis.conf')
    await writeFile(config, `${lines.join('\n')}\n`)
    const args = [config, ...(isSentinel ? ['--sentinel'] : [])]
    const child = spawn('redis-server', args, { stdio: 'ignore' })
    const probe = new Redis({ port, retryStrategy: () => 20, maxRetriesPerRequest: null, ...access })
    probe.on('error', () => undefined)
    await probe.ping()
    probe.disconnect()
    return new RedisNode(port, child)
  }

  async signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    this.#child.kill(signal)
    if (signal === 'SIGKILL') await once(this.#child, 'exit')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    await this.signal('SIGKILL')
  }
}

/** A primary, a replica and the given number of Sentinels, which declare it dead within a second. */
export class SentinelWorld implements AsyncDisposable {
  readonly primary: RedisNode
  readonly replica: RedisNode
  readonly sentinels: readonly RedisNode[]
  readonly #access: Access
  readonly #parts: AsyncDisposableStack

  private constructor(
    nodes: Pick<SentinelWorld, 'primary' | 'replica' | 'sentinels'>,
    access: Access,
    parts: AsyncDisposableStack,
  ) {
    this.primary = nodes.primary
    this.replica = nodes.replica
    this.sentinels = nodes.sentinels
    this.#access = access
    this.#parts = parts
  }

  static async start({ folder, tls, access = {} }: SentinelWorldOptions): Promise<SentinelWorld> {
    await using parts = new AsyncDisposableStack()
    const secured = tls === undefined ? {} : { tls }
    const common = { folder, ...secured }
    const password = [`requirepass ${PASSWORDS.redis}`, `masterauth ${PASSWORDS.redis}`]
    const data = { ...common, access: { ...access, password: PASSWORDS.redis } }
    const primary = parts.use(await RedisNode.start({ ...data, name: 'primary', settings: password }))
    const follow = [...password, `replicaof 127.0.0.1 ${primary.port}`]
    const replica = parts.use(await RedisNode.start({ ...data, name: 'replica', settings: follow }))
    const sentinels: RedisNode[] = []
    for (const name of ['one', 'two', 'three']) {
      const settings = [
        `requirepass ${PASSWORDS.sentinel}`,
        `sentinel sentinel-pass ${PASSWORDS.sentinel}`,
        `sentinel monitor ${GROUP} 127.0.0.1 ${primary.port} 2`,
        `sentinel auth-pass ${GROUP} ${PASSWORDS.redis}`,
        `sentinel down-after-milliseconds ${GROUP} 500`,
        `sentinel failover-timeout ${GROUP} 3000`,
      ]
      const options = { ...common, access: { ...access, password: PASSWORDS.sentinel } }
      sentinels.push(parts.use(await RedisNode.start({ ...options, name, settings, isSentinel: true })))
    }
    const world = new SentinelWorld({ primary, replica, sentinels }, access, parts.move())
    await world.#untilKnown()
    return world
  }

  /** The addresses in the form of redis.sentinels in the configuration. */
  get addresses(): { readonly host: string; readonly port: number }[] {
    return this.sentinels.map(({ port }) => ({ host: '127.0.0.1', port }))
  }

  /** The port of the server that the Sentinels currently report. */
  async primaryPort(): Promise<number> {
    const [first] = this.sentinels
    const asking = new Redis({ port: first?.port ?? 0, ...this.#access, password: PASSWORDS.sentinel })
    try {
      const answer = (await asking.call('SENTINEL', 'get-master-addr-by-name', GROUP)) as string[]
      return Number(answer[1])
    } finally {
      asking.disconnect()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync()
  }

  /** Until the Sentinels know each other and a replica with the data, no failover is possible. */
  async #untilKnown(): Promise<void> {
    for (const { port } of this.sentinels) {
      const asking = new Redis({ port, ...this.#access, password: PASSWORDS.sentinel })
      for (;;) {
        const text = String(await asking.info('sentinel'))
        if (/status=ok.*slaves=1,sentinels=3/.test(text)) break
        await delay(100)
      }
      asking.disconnect()
    }
  }
}

interface SentinelWorldOptions {
  readonly folder: string
  readonly tls?: NonNullable<RedisNodeOptions['tls']>
  readonly access?: Access
}

/** The Sentinels' name for the servers. */
export const GROUP = 'capfleet-redis'
export const PASSWORDS = { redis: 'redis-secret', sentinel: 'sentinel-secret' }
