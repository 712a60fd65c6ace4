/** A run as tables on stdout. */
import { printCells } from '../bench/report/print-cells.ts'
import { loadAverage, type PhaseFigures, quantile } from './scale-meter.ts'
import type { ScaleRun } from './scale-run.ts'

const FAULTS_SHOWN = 20
const ENDS = ['complete', 'partial', 'cut', 'refused', 'WRONG'] as const

export function printReport(run: ScaleRun): void {
  printCosts(run.meter.phases)
  printProbes(run.meter.phases)
  printCalls(run)
  printMerges(run)
  print('')
  for (const { what, tookMs } of run.notes) {
    const figures = [0.5, 0.99, 1].map((part) => quantile(tookMs, part).toFixed(0))
    print(
      tookMs.length === 1
        ? `${what}: ${figures[0]}`
        : `${what}: p50 ${figures[0]} p99 ${figures[1]} max ${figures[2]} ms`,
    )
  }
  print(`load average of the machine at the end: ${loadAverage()}`)
  print(`${run.faults.length} faults`)
  for (const fault of run.faults.slice(0, FAULTS_SHOWN)) print(`  ${fault}`)
}

function printCosts(phases: readonly PhaseFigures[]): void {
  const widths = [15, 6, 16, 14, 17, 14, 11, 13, 10, 12, 8, 7]
  const titles = [
    's',
    'gateway cores',
    'MiB most',
    'descriptors',
    'loop p99/max',
    'Redis cores',
    'commands/s',
    'MiB most',
  ]
  printCells(['phase', ...titles, 'answers/s', 'devices', 'client'], widths)
  const all = (values: readonly number[], digits: number) =>
    values.map((value) => value.toFixed(digits)).join(' ')
  for (const phase of phases) {
    const cells = [
      phase.name,
      ((phase.toMs - phase.fromMs) / 1_000).toFixed(0),
      all(phase.gatewayCores, 2),
      all(phase.gatewayMiB, 0),
      all(phase.gatewayFds, 0),
      `${phase.loopP99Ms.toFixed(1)}/${phase.loopMaxMs.toFixed(0)}`,
      phase.redisCores.toFixed(3),
      phase.redisCommandsPerS.toFixed(0),
      phase.redisMiB.toFixed(1),
      phase.answersPerS.toFixed(0),
      phase.deviceCores.toFixed(2),
      phase.clientCores.toFixed(2),
    ]
    printCells(cells, widths)
  }
}

/** What otherwise idle gateways spend for each answer of a device. */
function printProbes([alone]: readonly PhaseFigures[]): void {
  if (alone === undefined) return
  const cores = alone.gatewayCores.reduce((sum, one) => sum + one, 0)
  const microseconds = (cores / alone.answersPerS) * 1e6
  print(
    `probes alone: ${microseconds.toFixed(0)} us of a gateway's processor for each question, all else included`,
  )
}

function printCalls({ load, meter: { phases } }: ScaleRun): void {
  const widths = [28, ...phases.map(() => 24)]
  print('')
  printCells(['calls, ms: p50 p99 (how many)', ...phases.map(({ name }) => name)], widths)
  for (const kind of new Set(load.calls.map((call) => call.kind)))
    printCells(
      [
        kind,
        ...phases.map((phase) =>
          timesIn(
            load.calls.filter((call) => call.kind === kind),
            phase,
          ),
        ),
      ],
      widths,
    )
}

function printMerges({ load: { merges }, meter: { phases } }: ScaleRun): void {
  const widths = [28, ...phases.map(() => 24)]
  print('')
  for (const end of ENDS)
    printCells(
      [
        `merges ${end}`,
        ...phases.map((phase) =>
          timesIn(
            merges.filter((merge) => merge.end === end),
            phase,
          ),
        ),
      ],
      widths,
    )
  const heads = merges
    .filter(({ end }) => end === 'complete')
    .map(({ atMs, headMs }) => ({ atMs, tookMs: headMs }))
  printCells(['wait for the first byte', ...phases.map((phase) => timesIn(heads, phase))], widths)
  const bytes = merges.reduce((sum, merge) => sum + merge.bytes, 0)
  print(`${(bytes / 1e6).toFixed(0)} MB of merges, each compared byte by byte`)
}

interface Timed {
  readonly atMs: number
  readonly tookMs: number
}

function timesIn(timed: readonly Timed[], { fromMs, toMs }: PhaseFigures): string {
  const took = timed.filter(({ atMs }) => atMs >= fromMs && atMs < toMs).map(({ tookMs }) => tookMs)
  if (took.length === 0) return '-'
  return `${quantile(took, 0.5).toFixed(1)} ${quantile(took, 0.99).toFixed(1)} (${took.length})`
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
