import { spawnSync } from 'node:child_process'
import type { Contender, Row, Workload } from '../rows/row.ts'
import type { Measure } from './measure-command.ts'

/** Medians of one side. */
export interface Side {
  readonly label: string
  readonly seconds: number
  readonly cpuSeconds: number | undefined
  readonly peakRssMiB: number
}

/** Ratios are the peer's figure divided by ours: above 1 = ours takes less. */
export interface Figures {
  readonly name: string
  readonly rounds: number
  readonly inputBytes: number
  readonly ours: Side
  readonly peer: Side
  readonly timeRatio: number
  readonly cpuRatio: number | undefined
  /** The output of both sides. */
  readonly output: string
}

/** A row without figures. */
export interface Failure {
  readonly name: string
  readonly failed: string
}

export interface Effort {
  readonly rounds: number
  /** The end by performance.now(): no further round begins after it. The first one always runs. */
  readonly endMs: number
}

/** Runs both sides in turn, at most `rounds` times each. Throws, without a figure, if their outputs differ. */
export async function compare(
  row: Row,
  { ours, peer, inputBytes }: Workload,
  { rounds, endMs }: Effort,
): Promise<Figures> {
  const [output, expected] = [await ours.output(), await peer.output()]
  if (output !== expected) throw new Error(`${ours.label} gives ${output}, ${peer.label} ${expected}`)
  const measured: { readonly ours: Measure[]; readonly peer: Measure[] } = { ours: [], peer: [] }
  for (let round = 0; round < rounds; round++) {
    if (round > 0 && performance.now() > endMs) break
    measured.ours.push(await ours.run())
    measured.peer.push(await peer.run())
  }
  const [our, their] = [sideOf(ours, measured.ours), sideOf(peer, measured.peer)]
  return {
    name: row.name,
    rounds: measured.ours.length,
    inputBytes,
    ours: our,
    peer: their,
    timeRatio: their.seconds / our.seconds,
    cpuRatio: our.cpuSeconds && their.cpuSeconds ? their.cpuSeconds / our.cpuSeconds : undefined,
    output: output.slice(0, 200),
  }
}

/** A side without a peer: shows how fast the machine is at that moment. */
export async function measureAlone(side: Pick<Contender, 'label' | 'run'>, rounds: number): Promise<Side> {
  const measures: Measure[] = []
  for (let round = 0; round < rounds; round++) measures.push(await side.run())
  return sideOf(side, measures)
}

/** A message if a program that the row needs is missing. */
export function whatIsMissing({ needs = {} }: Pick<Row, 'needs'>): string | undefined {
  const missing = Object.entries(needs).find(([program]) => spawnSync('which', [program]).status !== 0)
  return missing && `${missing[0]} is not installed (apt-get install ${missing[1]})`
}

function sideOf({ label }: Pick<Contender, 'label'>, measures: readonly Measure[]): Side {
  const cpu = measures.flatMap(({ cpuSeconds }) => cpuSeconds ?? [])
  return {
    label,
    seconds: median(measures.map(({ seconds }) => seconds)),
    cpuSeconds: cpu.length === 0 ? undefined : median(cpu),
    peakRssMiB: Math.max(...measures.map(({ peakRssMiB }) => peakRssMiB)),
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
