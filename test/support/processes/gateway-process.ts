/** A gateway in a separate process, as in production, which can be killed, stopped and restarted. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { stringify } from 'yaml'
import { NODE_OPTIONS } from '../../../src/demo/child-program.ts'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { refuseSecretsOnCommandLine, USER_PASSWORD } from '../suite-secrets.ts'
import { writeUsers } from '../suite-users.ts'

const USER = 'user'

/** Authorization header of a client. */
export const GATEWAY_AUTHORIZATION = `Basic ${btoa(`${USER}:${USER_PASSWORD}`)}`
/** The same for curl --user. */
export const GATEWAY_CREDENTIALS = `${USER}:${USER_PASSWORD}`

export interface GatewayProcessOptions {
  /** Contains configuration and log; the caller removes it. */
  readonly folder: string
  readonly name: string
  /** As in the YAML file, in addition to listen, auth, home and timeZone. */
  readonly config: Readonly<Record<string, unknown>>
  readonly environment: Readonly<Record<string, string>>
}

const START_RETRY_MS = 500
const LOG_TAIL = 3_000

export class GatewayProcess implements AsyncDisposable {
  readonly #options: GatewayProcessOptions
  readonly #logFile: number
  #child: ChildProcess | undefined
  #url = ''
  #ended = false

  private constructor(options: GatewayProcessOptions) {
    this.#options = options
    this.#logFile = openSync(join(options.folder, `${options.name}.log`), 'a')
  }

  static async start(options: GatewayProcessOptions): Promise<GatewayProcess> {
    await writeUsers(join(options.folder, 'users.yaml'), [{ name: USER, role: 'user' }], USER_PASSWORD)
    const gateway = new GatewayProcess(options)
    await gateway.reconfigure(options.config)
    await gateway.start()
    return gateway
  }

  /** Replaces the configuration file; a running process notices it automatically. */
  async reconfigure(config: Readonly<Record<string, unknown>>): Promise<void> {
    const path = this.#configPath
    await writeFile(`${path}.new`, stringify({ ...this.#fixedSettings(), ...config }))
    await rename(`${path}.new`, path)
  }

  /** Of the current process; changes with a restart. */
  get url(): string {
    return this.#url
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** How the process ended, and the end of its log; undefined while it runs. */
  async death(): Promise<string | undefined> {
    const child = this.#child
    if (child !== undefined && !hasEnded(child)) return undefined
    const log = await readFile(join(this.#options.folder, `${this.#options.name}.log`), 'utf8')
    return `${child?.exitCode} ${child?.signalCode}: ${log.slice(-LOG_TAIL)}`
  }

  /** Starts it, repeatedly if needed: it exits if Redis becomes unreachable during the start. */
  async start(): Promise<void> {
    while (!this.#ended && !(await this.#startOnce())) await delay(START_RETRY_MS)
  }

  /** Sends a signal; for SIGKILL and SIGTERM, waits for the end of the process and returns its status. */
  async signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): Promise<number | null> {
    const child = this.#child
    if (child === undefined) return null
    if (!hasEnded(child)) {
      child.kill(signal)
      if (signal === 'SIGKILL' || signal === 'SIGTERM') await once(child, 'exit')
    }
    return child.exitCode
  }

  /** Open file descriptors by kind, and the memory in use. */
  async usage(): Promise<{ readonly fds: number; readonly rssBytes: number }> {
    const [fds, status] = await Promise.all([
      readdir(`/proc/${this.pid}/fd`),
      readFile(`/proc/${this.pid}/status`, 'utf8'),
    ])
    return { fds: fds.length, rssBytes: Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024 }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true
    await refuseSecretsOnCommandLine(this.pid)
    await this.signal('SIGKILL')
    closeSync(this.#logFile)
  }

  get #configPath(): string {
    return join(this.#options.folder, `${this.#options.name}.yaml`)
  }

  #fixedSettings(): Record<string, unknown> {
    const { folder, name } = this.#options
    const [users, home] = [join(folder, 'users.yaml'), join(folder, name)]
    return {
      listen: { port: 0 },
      auth: { users, anonymousMetrics: true },
      home,
      timeZone: 'UTC',
      logLevel: 'warn',
    }
  }

  async #startOnce(): Promise<boolean> {
    const child = spawn(
      process.execPath,
      [...NODE_OPTIONS, 'src/cli.ts', 'gateway', '--config', this.#configPath],
      {
        cwd: REPOSITORY_ROOT,
        env: { ...process.env, ...this.#options.environment },
        stdio: ['ignore', 'pipe', this.#logFile],
      },
    )
    this.#child = child
    if (child.stdout === null) throw new Error('a piped stdout is there')
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /^capfleet gateway ready (\S+)/.exec(line)?.[1]
      if (url === undefined) continue
      this.#url = url
      return true
    }
    if (!hasEnded(child)) await once(child, 'exit')
    return false
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}
