/** Simulated devices and the network around them, in a separate process. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import type { FifthReader } from './simulated-device.ts'

export interface FleetSettings {
  readonly devices: number
  readonly gateways: number
  /** Unix socket of Redis. */
  readonly redisPath: string
  readonly claimedReaders?: number | undefined
  readonly pace: { readonly packets: number; readonly packetsPerTick: number; readonly tickMs: number }
}

export interface FleetFacts {
  /** [gateway][device] */
  readonly devicePorts: readonly (readonly number[])[]
  /** [gateway] */
  readonly redisPorts: readonly number[]
}

export interface FleetState {
  readonly readers: readonly number[]
  readonly mostReaders: readonly number[]
  /** Completed downloads. */
  readonly served: number
  /** New connections to devices that have sent data while their network is cut. */
  readonly held: number
  /** Downloads answered with 503. */
  readonly refused: number
  readonly fifths: readonly FifthReader[]
}

/** Which network of a gateway is cut. */
export type NetworkPart = 'redis' | 'devices'

export type FleetCommand =
  | { readonly kind: 'state'; readonly id: number }
  | {
      readonly kind: 'cut' | 'mend'
      readonly id: number
      readonly of: NetworkPart
      readonly gateway: number
    }

export class SimulatedFleet implements AsyncDisposable {
  readonly facts: FleetFacts
  readonly #child: ChildProcess
  readonly #answers = new Map<number, (message: unknown) => void>()
  #lastId = 0

  private constructor(child: ChildProcess, facts: FleetFacts) {
    this.#child = child
    this.facts = facts
    child.on('message', (message: { id: number }) => {
      this.#answers.get(message.id)?.(message)
      this.#answers.delete(message.id)
    })
  }

  static async start(settings: FleetSettings): Promise<SimulatedFleet> {
    const program = join(REPOSITORY_ROOT, 'test/support/devices/simulated-fleet-program.ts')
    const child = fork(program, [JSON.stringify(settings)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    const [facts] = (await once(child, 'message')) as [FleetFacts]
    return new SimulatedFleet(child, facts)
  }

  state(): Promise<FleetState> {
    return this.#ask((id) => ({ kind: 'state', id })) as Promise<FleetState>
  }

  async cut(of: NetworkPart, gateway: number): Promise<void> {
    await this.#ask((id) => ({ kind: 'cut', id, of, gateway }))
  }

  async mend(of: NetworkPart, gateway: number): Promise<void> {
    await this.#ask((id) => ({ kind: 'mend', id, of, gateway }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }

  #ask(command: (id: number) => FleetCommand): Promise<unknown> {
    this.#lastId += 1
    const id = this.#lastId
    return new Promise((resolve) => {
      this.#answers.set(id, resolve)
      this.#child.send(command(id))
    })
  }
}
