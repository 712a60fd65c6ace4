/** Workers in separate processes, which can be killed, stopped and restarted. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { NODE_OPTIONS } from '../../../src/demo/child-program.ts'
import type { GatewayConfig } from '../../../src/gateway/gateway-config.ts'
import type { WorkerTimings } from '../../../src/worker/worker-timings.ts'
import type { TempGateway } from '../processes/temp-gateway.ts'
import { FAST_TIMINGS } from '../processes/temp-worker.ts'

const PROGRAM = fileURLToPath(new URL('export-worker-program.ts', import.meta.url))
const FAULT = fileURLToPath(new URL('planted-fault.ts', import.meta.url))

/**
 * end-of-file: it continues where a file ends instead of at the checkpoint. poison: it crashes on an export whose id
 * is in a file. open-file: it is killed in the middle of its turn, `deathsMax` times: after the first checkpoint with
 * a file that it has begun, when what the file replaces has been removed.
 */
export type WorkerFault =
  | { readonly kind: 'end-of-file' }
  | { readonly kind: 'poison'; readonly idPath: string; readonly deathsPath: string }
  | { readonly kind: 'open-file'; readonly begunPath: string; readonly deathsMax: number }

export interface WorkerSettings {
  readonly config: GatewayConfig
  readonly configPath: string
  readonly timings: WorkerTimings
}

export interface WorkerProcessOptions {
  readonly gateway: Pick<TempGateway, 'config' | 'configPath'>
  /** Contains settings and log. */
  readonly folder: string
  readonly name: string
  readonly fault?: WorkerFault
  /** Default: those for tests that kill workers. */
  readonly timings?: WorkerTimings
  /** In addition to this process's environment. */
  readonly environment?: Readonly<Record<string, string>>
}

export class ExportWorkerProcess implements AsyncDisposable {
  readonly #options: WorkerProcessOptions
  readonly #log: number
  #child: ChildProcess | undefined
  #url = ''
  #isOver = false
  #starting: Promise<void> | undefined

  private constructor(options: WorkerProcessOptions) {
    this.#options = options
    this.#log = openSync(this.#path('log'), 'a')
  }

  static async start(options: WorkerProcessOptions): Promise<ExportWorkerProcess> {
    const worker = new ExportWorkerProcess(options)
    const { config, configPath } = options.gateway
    const { timings = FAST_TIMINGS } = options
    const { worker: own } = config.exports
    const listening = { ...own, listen: { ...own.listen, port: 0 } }
    const settings: WorkerSettings = {
      config: { ...config, exports: { ...config.exports, worker: listening } },
      configPath,
      timings,
    }
    await writeFile(worker.#path('json'), JSON.stringify(settings))
    await worker.start()
    return worker
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** The URL of the current process; changes with a restart. */
  get url(): string {
    return this.#url
  }

  get isRunning(): boolean {
    const child = this.#child
    return child !== undefined && child.exitCode === null && child.signalCode === null
  }

  /** Starts it, repeatedly if needed: it exits while Redis is away. */
  start(): Promise<void> {
    this.#starting ??= this.#startUntilReady().finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  /** Sends the signal; for SIGKILL and SIGTERM, waits for the end of the process. */
  async signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): Promise<void> {
    const child = this.#child
    if (child === undefined || !this.isRunning) return
    child.kill(signal)
    if (signal === 'SIGKILL' || signal === 'SIGTERM') await once(child, 'exit')
  }

  log(): Promise<string> {
    return readFile(this.#path('log'), 'utf8')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await this.signal('SIGKILL')
    await this.#starting
    closeSync(this.#log)
  }

  #path(extension: string): string {
    return join(this.#options.folder, `${this.#options.name}.${extension}`)
  }

  async #startUntilReady(): Promise<void> {
    while (!this.#isOver && !(await this.#startOnce()));
  }

  async #startOnce(): Promise<boolean> {
    const { fault = null, environment } = this.#options
    const faulty = fault === null ? [] : ['--import', FAULT]
    const child = spawn(process.execPath, [...NODE_OPTIONS, ...faulty, PROGRAM, this.#path('json')], {
      stdio: ['ignore', this.#log, this.#log, 'ipc'],
      env: { ...process.env, ...environment, EXPORT_WORKER_FAULT: JSON.stringify(fault) },
    })
    this.#child = child
    const message = once(child, 'message').then(([url]) => String(url))
    const url = await Promise.race([message, once(child, 'exit').then(() => undefined)])
    this.#url = url ?? ''
    return url !== undefined
  }
}
