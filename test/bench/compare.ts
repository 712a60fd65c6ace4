import type { Measure } from './measure-command.ts'
import type { Contender, Workload } from './workload.ts'

const COLUMNS = [18, 50, 50, 8] as const

export function printHeading(): void {
  printRow(['workload', 'capfleet', 'peer', 'ratio'])
}

/**
 * Runs both sides in turn, `rounds` times each, and prints the medians and their ratio (above 1:
 * we are faster). Throws, without a figure, when the outputs differ in the number of packets.
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
  const ratio = medianSeconds(measured.peer) / medianSeconds(measured.ours)
  printRow([
    name,
    cell(ours, measured.ours, inputBytes),
    cell(peer, measured.peer, inputBytes),
    `${ratio.toFixed(2)}x`,
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
  const rate = inputBytes / seconds / 1e6
  const [first] = measures
  const cpu =
    first?.cpuSeconds === undefined
      ? ''
      : ` ${median(measures.map((one) => one.cpuSeconds ?? 0)).toFixed(3)} cpu-s`
  return `${label} ${seconds.toFixed(3)} s ${rate.toFixed(0)} MB/s ${rssMiB.toFixed(0)} MiB${cpu}`
}

function medianSeconds(measures: readonly Measure[]): number {
  return median(measures.map((measure) => measure.seconds))
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

function printRow(cells: readonly string[]): void {
  const line = cells.map((text, i) => text.padEnd(COLUMNS[i] ?? 0)).join('  ')
  process.stdout.write(`${line.trimEnd()}\n`)
}
