import type { BenchFleet } from './bench-fleet.ts'
import type { BenchInputs } from './bench-inputs.ts'
import type { Measure } from './measure-command.ts'
import type { ProxyWorld } from './proxy-world.ts'

/** One side of a comparison. */
export interface Contender {
  readonly label: string
  run(): Promise<Measure>
  /** Packets in its output. */
  countPackets(): Promise<number>
}

/** One comparison over the same input. */
export interface Workload {
  /** What the figures per second are taken of: bytes of the input. */
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
