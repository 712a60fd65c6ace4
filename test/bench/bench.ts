/**
 * `npm run bench -- [name ...] [--size-mib N] [--rounds N] [--keep]`: each workload prints our figure,
 * the peer's in the same run (in turn, medians) and the ratios of time and, where it is measured, of
 * processor time; names may be beginnings ("merge"). `queue`, `capture`, `exports` and `tokens` have figures of their
 * own and run alone.
 * No figure counts unless both sides gave the same number of packets. Figures per second and per GB are
 * of the input's bytes; memory is the largest resident size of the working process. Control rows, first
 * and last, show how fast the machine was meanwhile. Results stay out of git.
 */
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runProgram } from '../../src/base/program.ts'
import { BenchFleet } from './bench-fleet.ts'
import { BenchInputs } from './bench-inputs.ts'
import { printCaptureFigures } from './capture.bench.ts'
import { compare, printControl, printHeading } from './compare.ts'
import { compressions } from './compress.bench.ts'
import { startConstantServer } from './constant-server.ts'
import { controls } from './control.bench.ts'
import { printExportFigures } from './exports.bench.ts'
import { measureCommand } from './measure-command.ts'
import { merges } from './merge.bench.ts'
import { ProxyWorld } from './proxy-world.ts'
import { printQueueFigures } from './queue.bench.ts'
import { relays } from './relay.bench.ts'
import { storedDownloads } from './stored-download.bench.ts'
import { printTokenFigures } from './tokens.bench.ts'
import type { WorkloadMaker } from './workload.ts'

const WORKLOADS: Readonly<Record<string, WorkloadMaker>> = {
  ...storedDownloads,
  ...merges,
  ...compressions,
  ...relays,
  ...controls,
}
const MIB = 1_048_576

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    'size-mib': { type: 'string' },
    rounds: { type: 'string' },
    keep: { type: 'boolean' },
  },
})

/** They measure no file that could have a size, and have their peers and rounds in themselves. */
const ALONE: Readonly<Record<string, () => Promise<void>>> = {
  // Requests and grants, of a scheduler that runs as in the gateway.
  queue: () => runProgram(printQueueFigures),
  // Packets of a wire.
  capture: printCaptureFigures,
  // How long people wait beside exports.
  exports: () => runProgram(printExportFigures),
  // What it costs to know a caller.
  tokens: () => runProgram(printTokenFigures),
}
const alone = positionals.find((name) => Object.hasOwn(ALONE, name))
if (alone !== undefined) {
  if (positionals.length > 1 || Object.keys(values).length > 0) {
    refuse(`${alone} runs alone and takes no options; leave the rest out`)
  }
  await ALONE[alone]?.()
  process.exit()
}
const sizeMib = wholeNumber('size-mib', 512)
const bytes = sizeMib * MIB
const rounds = wholeNumber('rounds', 5)
const chosen = chooseWorkloads(positionals)
const folder = join(tmpdir(), `capfleet-bench-${sizeMib}`)
let failed = false
try {
  await runAll()
} finally {
  if (!values.keep) await rm(folder, { recursive: true, force: true })
}
if (failed) process.exitCode = 1

async function runAll(): Promise<void> {
  await using fleet = await BenchFleet.create(join(folder, 'fleet'))
  await using owned = new AsyncDisposableStack()
  let world: Promise<ProxyWorld> | undefined
  const proxies = () => {
    world ??= ProxyWorld.start().then((started) => owned.use(started))
    return world
  }
  const inputs = new BenchInputs(folder, bytes)
  const { paths } = await inputs.single()
  printHeading()
  await printControls(paths[0] ?? '')
  for (const [name, make] of chosen) {
    try {
      await compare(name, await make({ inputs, fleet, proxies, owned }), rounds)
    } catch (error) {
      failed = true
      process.stdout.write(`${name}: failed: ${error instanceof Error ? error.message : String(error)}\n`)
    }
  }
  await printControls(paths[0] ?? '')
}

async function printControls(path: string): Promise<void> {
  await printControl({ label: 'cat', run: () => measureCommand('cat', [path]) }, bytes)
  await using server = await startConstantServer(bytes)
  const run = () => measureCommand('curl', ['-fsS', server.url, '-o', '/dev/null'], { pid: process.pid })
  await printControl({ label: 'constant HTTP', run }, bytes)
}

function wholeNumber(name: 'size-mib' | 'rounds', unlessGiven: number): number {
  const value = Number(values[name] ?? unlessGiven)
  if (!Number.isInteger(value) || value < 1) {
    refuse(`--${name} must be a whole number from 1, got "${values[name]}"`)
  }
  return value
}

function refuse(why: string): never {
  process.stderr.write(`bench: ${why}\n`)
  process.exit(2)
}

function chooseWorkloads(names: readonly string[]): (readonly [string, WorkloadMaker])[] {
  const all = Object.entries(WORKLOADS)
  const unknown = names.find((name) => !all.some(([workload]) => workload.startsWith(name)))
  if (unknown !== undefined) {
    const known = [...Object.keys(WORKLOADS), ...Object.keys(ALONE)]
    refuse(`no workload "${unknown}"; there are ${known.join(', ')}`)
  }
  return names.length === 0
    ? all
    : all.filter(([workload]) => names.some((name) => workload.startsWith(name)))
}
