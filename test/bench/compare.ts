import type { Measure } from './measure-command.ts'
import type { Contender, Workload } from './workload.ts'

const COLUMNS = [22, 50, 50, 8, 8] as const

export function printHeading(): void {
  printRow(['workload', 'capfleet', 'peer', 'ratio', 'cpu'])
}

/**
 * Runs both sides in turn, `rounds` times each, and prints the medians and their ratios of time and,
 * where it is measured, of processor time (above 1: we need less). Throws, without a figure, when the
 * outputs differ in the number of packets.
 */
export async function compare(name: string, workload: Workload, rounds: number): Promise<void> {
  const { ours, peer, inputBytes } = workload
  const [ourPackets, peerPackets] = [await ours.countPackets(), await peer.countPackets()]
  if (ourPackets !== peerPackets) {
    throw new Error(`${name}: ${ours.label} gives ${ourPackets} packets, ${peer.label} ${peerPackets}`)
  }
  const measured: { readonly ours: Measure[]; readonly peer: Measure[] } = { ours: [], peer: [] }
  for (let round = 0; round < rounds; round++) {
    measured.ours.push(await ours.run())
    measured.peer.push(await peer.run())
  }
  printRow([
    name,
    cell(ours, measured.ours, inputBytes),
    cell(peer, measured.peer, inputBytes),
    ratio(medianSeconds(measured.ours), medianSeconds(measured.peer)),
    ratio(medianCpuSeconds(measured.ours), medianCpuSeconds(measured.peer)),
  ])
}

/** A figure without a peer: shows how fast the machine is at that moment. */
export async function printControl(
  contender: Pick<Contender, 'label' | 'run'>,
  inputBytes: number,
): Promise<void> {
  const measures: Measure[] = []
  for (let round = 0; round < 3; round++) measures.push(await contender.run())
  printRow(['control', cell(contender, measures, inputBytes), '', ''])
}

function cell({ label }: Pick<Contender, 'label'>, measures: readonly Measure[], inputBytes: number): string {
  const seconds = medianSeconds(measures)
  const rssMiB = Math.max(...measures.map((measure) => measure.peakRssMiB))
  const cpuSeconds = medianCpuSeconds(measures)
  return [
    `${label} ${seconds.toFixed(3)} s`,
    ...(inputBytes === 0 ? [] : [`${(inputBytes / seconds / 1e6).toFixed(0)} MB/s`]),
    ...(rssMiB === 0 ? [] : [`${rssMiB.toFixed(0)} MiB`]),
    ...(cpuSeconds === undefined ? [] : [cpuFigure(cpuSeconds, inputBytes)]),
  ].join(' ')
}

function cpuFigure(cpuSeconds: number, inputBytes: number): string {
  if (inputBytes === 0) return `${cpuSeconds.toFixed(3)} cpu-s`
  return `${(cpuSeconds / (inputBytes / 1e9)).toFixed(2)} cpu-s/GB`
}

function ratio(ours: number | undefined, peers: number | undefined): string {
  return ours === undefined || peers === undefined ? '' : `${(peers / ours).toFixed(2)}x`
}

function medianSeconds(measures: readonly Measure[]): number {
  return median(measures.map((measure) => measure.seconds))
}

/** undefined where it is not measured. */
function medianCpuSeconds(measures: readonly Measure[]): number | undefined {
  const values = measures.flatMap(({ cpuSeconds }) => cpuSeconds ?? [])
  return values.length === 0 ? undefined : median(values)
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

function printRow(cells: readonly string[]): void {
  const line = cells.map((text, i) => text.padEnd(COLUMNS[i] ?? 0)).join('  ')
  process.stdout.write(`${line.trimEnd()}\n`)
}
