/**
 * The private Redis of a gateway without a configured one: a child process on a Unix socket, kept running until
 * `close`, with its data in `<home>/redis`. Only one gateway can use a home.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import { openSocketFolder, type SocketFolder } from '../../shared/base/socket-folder.ts'

export interface PrivateRedis {
  readonly socketPath: string
  /** Process id of the current server; changes after a restart. */
  readonly pid: number | undefined
  /** Ends the server and waits until its data is on disk. */
  close(): Promise<void>
}

const SOCKET_NAME = 'redis.sock'
const START_LIMIT_MS = 10_000
/** How long a previous gateway's server gets to notice that its parent is gone. */
const PREDECESSOR_LIMIT_MS = 5_000
const RESTART_FIRST_MS = 100
const RESTART_MOST_MS = 5_000
const STOP_LIMIT_MS = 10_000
const POLL_MS = 50

export interface FindRedisOptions {
  readonly log: Log
  /** Ends the wait, with its reason. */
  readonly signal: AbortSignal
  /** How long the gateway may take to start its first Redis. */
  readonly limitMs?: number
}

/** Enough for a gateway that is started at the same time as its worker. */
const FIND_LIMIT_MS = 30_000

/** Where other programs on this machine find the private Redis of `home`. Fails with bad-config if none appears. */
export async function findPrivateRedis(
  home: string,
  { log, signal, limitMs = FIND_LIMIT_MS }: FindRedisOptions,
): Promise<SocketFolder> {
  const folder = folderOf(home)
  const path = join(folder, SOCKET_NAME)
  const endMs = performance.now() + limitMs
  for (let isTold = false; ; isTold = true) {
    signal.throwIfAborted()
    try {
      await access(path)
      return openSocketFolder(folder, SOCKET_NAME)
    } catch (cause) {
      if (performance.now() >= endMs) {
        throw new CapfleetError(
          'bad-config',
          `redis.url is not set, and no gateway runs a private Redis in ${home}; start the gateway first, or set redis.url`,
          { param: 'redis.url', cause },
        )
      }
      if (!isTold) log.warn('redis.awaited', { waitedS: 0, message: `no gateway has created ${path}` })
      await delay(POLL_MS, undefined, { signal })
    }
  }
}

/** Fails with bad-config if no server program is found or another gateway uses this home. */
export async function startPrivateRedis(home: string, log: Log): Promise<PrivateRedis> {
  const binary = findServer()
  const folder = folderOf(home)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await using opened = new AsyncDisposableStack()
  const { socketPath } = opened.use(openSocketFolder(folder, SOCKET_NAME))
  await waitForPredecessor(socketPath, home)
  const server = new SupervisedServer(binary, { folder, socketPath }, log)
  opened.defer(() => server.stop())
  server.start()
  await waitUntilReady(socketPath, server)
  const owner = opened.move()
  return {
    socketPath,
    get pid() {
      return server.pid
    },
    close: () => owner.disposeAsync(),
  }
}

function findServer(): string {
  for (const name of ['redis-server', 'valkey-server']) {
    if (spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0) return name
  }
  throw new CapfleetError(
    'bad-config',
    'redis.url is not set and neither redis-server nor valkey-server is installed; install one (apt-get install redis-server) or set redis.url',
    { param: 'redis.url' },
  )
}

function folderOf(home: string): string {
  return resolve(home, 'redis')
}

/**
 * Arguments of a server that runs in its folder. It shows its socket in its process title, which identifies its owner
 * in `ps`.
 */
function serverArguments(folder: string, socketPath: string): string[] {
  const path = join(folder, SOCKET_NAME)
  const settings = {
    port: '0',
    // A path through a file descriptor is only valid in this process.
    unixsocket: socketPath === path ? path : SOCKET_NAME,
    unixsocketperm: '700',
    dir: folder,
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '',
    maxmemory: '0',
    'maxmemory-policy': 'noeviction',
    daemonize: 'no',
    loglevel: 'warning',
  }
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
}

/** A new server would take over the socket of a running one, and both would write the same files. */
async function waitForPredecessor(socketPath: string, home: string): Promise<void> {
  const limitMs = performance.now() + PREDECESSOR_LIMIT_MS
  while (await answers(socketPath)) {
    if (performance.now() > limitMs) {
      throw new CapfleetError(
        'bad-config',
        `home: another gateway uses ${home} (its Redis answers at ${socketPath}); stop it or choose another home`,
        { param: 'home' },
      )
    }
    await delay(POLL_MS)
  }
}

async function waitUntilReady(socketPath: string, server: SupervisedServer): Promise<void> {
  const limitMs = performance.now() + START_LIMIT_MS
  while (!(await answers(socketPath))) {
    if (performance.now() > limitMs) {
      throw new CapfleetError(
        'scheduler-unavailable',
        `the private Redis did not start: ${server.lastWords() || 'it printed nothing'}`,
      )
    }
    await delay(POLL_MS)
  }
}

/** Whether a server accepts commands there (false while it is loading its data). */
async function answers(socketPath: string): Promise<boolean> {
  const redis = new Redis(socketPath, {
    lazyConnect: true,
    retryStrategy: null,
    enableReadyCheck: false,
    connectTimeout: 1_000,
    commandTimeout: 1_000,
  })
  redis.on('error', () => undefined)
  try {
    await redis.connect()
    return (await redis.ping()) === 'PONG'
  } catch {
    return false
  } finally {
    redis.disconnect()
  }
}

interface ServerPlace {
  readonly folder: string
  readonly socketPath: string
}

/** Restarts the server whenever it ends unexpectedly. */
class SupervisedServer {
  readonly #binary: string
  readonly #folder: string
  readonly #arguments: readonly string[]
  readonly #log: Log
  readonly #stopping = new AbortController()
  #child: ChildProcess | undefined
  #restartMs = RESTART_FIRST_MS
  #restart: NodeJS.Timeout | undefined
  #output = ''

  constructor(binary: string, { folder, socketPath }: ServerPlace, log: Log) {
    this.#binary = binary
    this.#folder = folder
    this.#arguments = serverArguments(folder, socketPath)
    this.#log = log
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  lastWords(): string {
    return this.#output.trim().split('\n').slice(-3).join(' | ')
  }

  start(): void {
    // setpriv replaces itself with the server, which then ends with this process however that ends.
    const [command, ...prefix] = endsWithParent()
      ? ['setpriv', '--pdeathsig', 'TERM', this.#binary]
      : [this.#binary]
    // A process group of its own: Ctrl-C in a terminal must not stop it before the gateway.
    const child = spawn(command ?? this.#binary, [...prefix, ...this.#arguments], {
      cwd: this.#folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    this.#child = child
    const startedMs = performance.now()
    void this.#listen(child)
    child.once('error', (error) => this.#log.error('redis.spawn-failed', { message: error.message }))
    child.once('exit', (code, signal) => this.#onExit(code, signal, performance.now() - startedMs))
    this.#log.info('redis.started', { pid: child.pid })
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    clearTimeout(this.#restart)
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
    await ended
    clearTimeout(limit)
  }

  async #listen(child: ChildProcess): Promise<void> {
    const streams = [child.stdout, child.stderr].filter((stream) => stream !== null)
    await Promise.all(
      streams.map(async (stream) => {
        for await (const text of stream.setEncoding('utf8')) {
          this.#output = (this.#output + text).slice(-4_096)
        }
      }),
    )
  }

  #onExit(code: number | null, signal: NodeJS.Signals | null, livedMs: number): void {
    if (this.#stopping.signal.aborted) return
    if (livedMs > RESTART_MOST_MS) this.#restartMs = RESTART_FIRST_MS
    this.#log.error('redis.ended', { code, signal, restartMs: this.#restartMs, output: this.lastWords() })
    this.#restart = setTimeout(() => this.start(), this.#restartMs)
    this.#restartMs = Math.min(this.#restartMs * 2, RESTART_MOST_MS)
  }
}

function endsWithParent(): boolean {
  return spawnSync('setpriv', ['--pdeathsig', 'TERM', 'true'], { stdio: 'ignore' }).status === 0
}
