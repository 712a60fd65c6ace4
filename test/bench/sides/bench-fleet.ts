import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { type ChildProgram, startChildProgram } from '../../../src/demo/child-program.ts'
import { DEMO_USER, type DemoHome, prepareDemoHome } from '../../../src/demo/demo-home.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'

/** A program that answers HTTP, and how to reach it. */
export interface BenchServer {
  readonly url: string
  readonly pid: number
  /** "name:password" for curl -u. */
  readonly credentials: string
}

const STOP_GRACE_MS = 5_000

/** Three appliances with their recorders, and a gateway, as separate processes; started on demand. */
export class BenchFleet implements AsyncDisposable {
  readonly #home: DemoHome
  readonly #children = new AsyncDisposableStack()
  readonly #devices = new Map<number, Promise<BenchServer>>()
  readonly #imported = new Set<string>()
  readonly #recorderPids = new Map<number, number>()
  #gateway: Promise<BenchServer> | undefined

  static async create(folder: string): Promise<BenchFleet> {
    return new BenchFleet(await prepareDemoHome(folder, 'generated'))
  }

  private constructor(home: DemoHome) {
    this.#home = home
  }

  device(index: number): Promise<BenchServer> {
    const started = this.#devices.get(index) ?? this.#startDevice(index)
    this.#devices.set(index, started)
    return started
  }

  gateway(): Promise<BenchServer> {
    this.#gateway ??= this.#startGateway()
    return this.#gateway
  }

  /** A worker of the gateway; the gateway is started before it. */
  async worker(): Promise<void> {
    await this.gateway()
    await this.#start('worker', ['worker', '--config', this.#gatewayConfig])
  }

  /** Imports a file into a device's store, unless this or an earlier run has done so. */
  async importFile(index: number, name: string, path: string): Promise<void> {
    await this.device(index)
    const capture = `${index}/${name}`
    if (this.#imported.has(capture)) return
    this.#imported.add(capture)
    process.stderr.write(`bench: importing ${name}\n`)
    try {
      await new RecorderClient(this.#deviceHome(index).store).importCapture({ name, files: [path] })
    } catch (error) {
      if (!(error instanceof CapfleetError) || error.code !== 'capture-exists') throw error
    }
  }

  /** The folder of a device's store. */
  storeOf(index: number): string {
    return this.#deviceHome(index).store
  }

  /** The process that writes a device's store. */
  async recorderPid(index: number): Promise<number> {
    await this.device(index)
    const pid = this.#recorderPids.get(index)
    if (pid === undefined) throw new RangeError(`there is no recorder ${index}`)
    return pid
  }

  /** The duration of an import, and what `look` finds in it; the import is removed again. */
  async importAndDelete(index: number, name: string, path: string, look = async () => '') {
    await this.device(index)
    const recorder = new RecorderClient(this.#deviceHome(index).store)
    const startMs = performance.now()
    await recorder.importCapture({ name, files: [path] })
    const seconds = (performance.now() - startMs) / 1000
    const found = await look()
    await recorder.deleteCapture(name)
    return { seconds, found }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#children.disposeAsync()
  }

  async #startDevice(index: number): Promise<BenchServer> {
    const { name, user, password, configPath } = this.#deviceHome(index)
    const recorder = await this.#start(`${name}-recorder`, ['recorder', '--config', configPath])
    this.#recorderPids.set(index, recorder.pid)
    const { address, pid } = await this.#start(name, ['appliance', '--config', configPath])
    return { url: address, pid, credentials: `${user}:${password}` }
  }

  async #startGateway(): Promise<BenchServer> {
    const path = this.#gatewayConfig
    const devices: unknown[] = []
    for (const [index, { name, site, user }] of this.#home.devices.entries()) {
      const { url } = await this.device(index)
      const password = { file: join(this.#home.folder, name, 'password') }
      devices.push({ name, site, url, user, password })
    }
    const config = {
      listen: { host: '127.0.0.1', port: 0 },
      home: join(this.#home.folder, 'gateway'),
      auth: { users: this.#home.gatewayUsersPath },
      exports: { worker: { listen: { port: 0 } } },
      devices,
    }
    await writeFile(path, stringify(config))
    const { address, pid } = await this.#start('gateway', ['gateway', '--config', path])
    return { url: address, pid, credentials: `${DEMO_USER}:${this.#home.password}` }
  }

  async #start(name: string, args: readonly string[]): Promise<ChildProgram> {
    const child = await startChildProgram(name, args, {
      logPath: join(this.#home.folder, 'log', `${name}.log`),
      appends: false,
    })
    this.#children.defer(() => child.stop(STOP_GRACE_MS))
    return child
  }

  get #gatewayConfig(): string {
    return join(this.#home.folder, 'gateway.yaml')
  }

  #deviceHome(index: number) {
    const device = this.#home.devices[index]
    if (device === undefined) throw new RangeError(`there is no device ${index}`)
    return device
  }
}
