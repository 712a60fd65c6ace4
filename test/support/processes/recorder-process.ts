/** A recorder in a separate process, as in production, at the end of a wire; it can be killed and restarted. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { stringify } from 'yaml'
import type { CaptureReport } from '../../../appliance/link/capture-report.ts'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { type CaptureWire, inNamespace } from '../network/capture-wire.ts'
import { OWN_LOOPBACK } from '../network/own-loopback.ts'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { WAIT_LIMIT_MS } from '../test-limits.ts'

export interface RecorderProcessOptions {
  readonly wire: CaptureWire
  /** Contains store, configuration and log; the caller removes it. */
  readonly folder: string
  /** Default: in `folder`. */
  readonly storePath?: string
  /** The setting `capture`, in addition to the port. */
  readonly capture?: Readonly<Record<string, unknown>>
  /** The setting `retention`. */
  readonly retention?: Readonly<Record<string, unknown>>
  /** A program and its arguments that run another one, such as setpriv. */
  readonly through?: readonly string[]
}

export class RecorderProcess implements AsyncDisposable {
  readonly storePath: string
  readonly configPath: string
  readonly client: RecorderClient
  readonly #options: RecorderProcessOptions
  readonly #log: number
  #child: ChildProcess | undefined

  private constructor(options: RecorderProcessOptions) {
    this.#options = options
    this.storePath = options.storePath ?? join(options.folder, 'store')
    this.configPath = join(options.folder, 'appliance.yaml')
    this.client = new RecorderClient(this.storePath)
    this.#log = openSync(join(options.folder, 'recorder.log'), 'a')
  }

  static async start(options: RecorderProcessOptions): Promise<RecorderProcess> {
    const recorder = new RecorderProcess(options)
    const port = { port: 0, interface: options.wire.interfaceName, ringBytes: 2 ** 24 }
    const config = {
      listen: { host: OWN_LOOPBACK, port: 0 },
      store: recorder.storePath,
      timeZone: 'UTC',
      logLevel: 'warn',
      auth: { users: join(options.folder, 'users.yaml') },
      // The stored packets are checked, however small the disk.
      retention: { minFreeBytes: 0, ...options.retention },
      imports: { segmentBytes: 2 ** 20 },
      capture: { ports: [port], segmentBytes: 2 ** 20, syncIntervalMs: 100, ...options.capture },
    }
    await writeFile(recorder.configPath, stringify(config))
    await recorder.start()
    return recorder
  }

  /** Resolves when it accepts commands. */
  async start(): Promise<void> {
    const { wire, through = [] } = this.#options
    const [program, args] = inNamespace(wire.receiver, [
      ...through,
      process.execPath,
      join(REPOSITORY_ROOT, 'src/cli.ts'),
      'recorder',
      '--config',
      this.configPath,
    ])
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', this.#log, 'ipc'] })
    this.#child = child
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      if (line.includes(' ready ')) return
    }
    const log = await readFile(join(this.#options.folder, 'recorder.log'), 'utf8')
    throw new Error(`the recorder did not start: ${log.slice(-3_000)}`)
  }

  /** Ends the process: with SIGKILL like a crash, with SIGTERM cleanly. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  /** Waits until the capture runs. */
  async running(): Promise<CaptureReport> {
    for (const endMs = performance.now() + WAIT_LIMIT_MS; ; await delay(5)) {
      const report = await this.client.captureReport()
      if (report.state === 'running') return report
      if (performance.now() > endMs) throw new Error(`the capture is ${report.state}: ${report.message}`)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL')
    closeSync(this.#log)
  }
}
