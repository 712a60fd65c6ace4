/** Many simulated devices in one separate process. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

export interface HostSettings {
  /** Number of its first device. */
  readonly first: number
  readonly devices: number
  readonly captures: number
  /** See SimulatedDeviceOptions. */
  readonly sendsWholeLists?: boolean
  readonly pace: { readonly packets: number; readonly packetsPerTick: number; readonly tickMs: number }
}

/** What devices do from now on: answer, refuse connections, or accept them and stay silent. */
export type DeviceMood = 'well' | 'refusing' | 'silent'

export interface HostState {
  /** Answers that are not downloads, over all devices. */
  readonly answered: number
  /** Downloads sent to their end. */
  readonly served: number
  /** Downloads that came while four others ran. */
  readonly fifths: number
  readonly mostReaders: number
}

export type HostCommand =
  | { readonly id: number; readonly kind: 'state' }
  | {
      readonly id: number
      readonly kind: 'mood'
      readonly devices: readonly number[]
      readonly mood: DeviceMood
    }

export class DeviceHost implements AsyncDisposable {
  readonly first: number
  readonly urls: readonly string[]
  readonly #child: ChildProcess
  readonly #answers = new Map<number, (state: HostState) => void>()
  #lastId = 0

  private constructor(child: ChildProcess, first: number, urls: readonly string[]) {
    this.#child = child
    this.first = first
    this.urls = urls
    child.on('message', ({ id, state }: { id: number; state: HostState }) => {
      this.#answers.get(id)?.(state)
      this.#answers.delete(id)
    })
  }

  static async start(settings: HostSettings): Promise<DeviceHost> {
    const program = join(REPOSITORY_ROOT, 'test/scale/device-host-program.ts')
    const child = fork(program, [JSON.stringify(settings)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    const [urls] = (await once(child, 'message')) as [readonly string[]]
    return new DeviceHost(child, settings.first, urls)
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  state(): Promise<HostState> {
    return this.#ask((id) => ({ id, kind: 'state' }))
  }

  /** Resolves when all devices of this host behave so. Devices of other hosts are ignored. */
  async setMood(devices: readonly number[], mood: DeviceMood): Promise<void> {
    const mine = devices.filter((device) => device >= this.first && device < this.first + this.urls.length)
    await this.#ask((id) => ({ id, kind: 'mood', devices: mine, mood }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }

  #ask(command: (id: number) => HostCommand): Promise<HostState> {
    this.#lastId += 1
    const id = this.#lastId
    return new Promise((resolve) => {
      this.#answers.set(id, resolve)
      this.#child.send(command(id))
    })
  }
}
