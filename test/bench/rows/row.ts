import type { BenchInput, BenchInputs } from '../inputs/bench-inputs.ts'
import type { Measure } from '../report/measure-command.ts'
import type { BenchFleet } from '../sides/bench-fleet.ts'
import type { EngineWork } from '../sides/engine-run.ts'
import type { ProxyWorld } from '../sides/proxy-world.ts'

/** One line of the bench: what is compared with what, and what the ratio shall be. */
export interface Row {
  readonly name: string
  /** What both sides do, for readers of the table. */
  readonly what: string
  /** The ratio that must be reached and the one that is wanted; above 1 = ours takes less. */
  readonly floor?: number
  readonly goal?: number
  /** Which ratio floor and goal are about: of the time on the clock, or of processor time. */
  readonly judgedBy?: 'time' | 'cpu'
  /** Programs that the peer needs, each with the Debian package that brings it. */
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
  /** What it gave, as a text that is the same for the same packets (pcap-digest.ts). */
  output(): Promise<string>
  /** The process that works, where it runs on between measurements: what a profile looks at. */
  readonly pid?: number
}

/** One comparison over the same input. */
export interface Workload {
  /** What the figures per second are taken of: bytes of the input; 0 = there is none. */
  readonly inputBytes: number
  readonly ours: Contender
  readonly peer: Contender
}

/** What a workload is made from. */
export interface BenchParts {
  readonly inputs: BenchInputs
  readonly fleet: BenchFleet
  /** What a workload starts for itself; ended with the bench. */
  readonly owned: AsyncDisposableStack
  /** Started when asked for. */
  readonly proxies: () => Promise<ProxyWorld>
}

export type WorkloadMaker = (parts: BenchParts) => Promise<Workload>
