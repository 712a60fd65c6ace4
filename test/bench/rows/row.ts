import type { BenchInput, BenchInputs } from '../inputs/bench-inputs.ts'
import type { Measure } from '../report/measure-command.ts'
import type { BenchFleet } from '../sides/bench-fleet.ts'
import type { EngineWork } from '../sides/engine-run.ts'
import type { ProxyWorld } from '../sides/proxy-world.ts'

/** One line of the bench: what is compared with what, and the required ratio. */
export interface Row {
  readonly name: string
  /** What both sides do, for readers of the table. */
  readonly what: string
  /** The ratio that must be reached, and the one that is wanted; above 1 = ours takes less. */
  readonly floor?: number
  readonly goal?: number
  /** Which ratio floor and goal refer to: that of real time, or that of processor time. */
  readonly judgedBy?: 'time' | 'cpu'
  /** Programs that the peer needs, each with the Debian package that contains it. */
  readonly needs?: Readonly<Record<string, string>>
  readonly make: WorkloadMaker
  /** The engine's own share of it, whose instructions a profile counts. */
  readonly engine?: {
    readonly work: EngineWork
    readonly input: (inputs: BenchInputs) => Promise<BenchInput>
  }
}

/** One side of a comparison. */
export interface Contender {
  readonly label: string
  run(): Promise<Measure>
  /** Its output, as a text that is the same for the same packets (pcap-digest.ts). */
  output(): Promise<string>
  /** The working process, if it runs on between measurements; a profile samples it. */
  readonly pid?: number
}

/** One comparison over the same input. */
export interface Workload {
  /** The bytes of the input, on which figures per second are based; 0 = no such figures. */
  readonly inputBytes: number
  readonly ours: Contender
  readonly peer: Contender
}

/** The inputs of a workload. */
export interface BenchParts {
  readonly inputs: BenchInputs
  readonly fleet: BenchFleet
  /** What a workload starts for itself; ended with the bench. */
  readonly owned: AsyncDisposableStack
  /** Started on demand. */
  readonly proxies: () => Promise<ProxyWorld>
}

export type WorkloadMaker = (parts: BenchParts) => Promise<Workload>
