/**
 * `npm run bench -- [name ...]` runs the rows of rows.ts whose names begin with a given name; `all` or no name runs all
 * of them: both sides in turn, medians, ratios of time and of processor time.
 *
 *   --size-mib N   size of each set of files; default 512. The single capture is a set of four times that size (of N
 *                  itself with --quick and in a profile)
 *   --rounds N     default 5, fewer if all rows would take longer than 20 minutes; --quick means 1
 *   --pcap DIR     uses the captures of a folder instead of the generated single file
 *   --json FILE    writes all figures as JSON, too
 *   --document     writes the table of docs/reference/measured.md; rows that did not run say so
 *   --keep         keeps the generated files for the next run
 *
 * `npm run bench -- profile <row>` shows where our side of a row spends its time (profile.ts). `queue`, `capture`,
 * `exports`, `tokens`, `page` and `index` have their own figures and run alone.
 *
 * `rows` says what is compared with what, `sides` runs both, `inputs` makes the files, `report` measures and prints.
 * `engine` is the engine without HTTP, `capture` the live capture; `alone` has the benches without rows.
 *
 * No figure counts unless both sides delivered the same packets. Figures per second and per GB refer to the input's
 * bytes; memory is the largest resident size of a server. Control rows, first and last, show how fast the machine was.
 */
import { rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runProgram } from '../../src/shared/base/program.ts'
import { printExportFigures } from './alone/exports.bench.ts'
import { printIndexFigures } from './alone/index.bench.ts'
import { printPageFigures } from './alone/page.bench.ts'
import { printQueueFigures } from './alone/queue.bench.ts'
import { printTokenFigures } from './alone/tokens.bench.ts'
import { printCaptureFigures } from './capture/capture.bench.ts'
import { BenchInputs } from './inputs/bench-inputs.ts'
import { BenchProgress } from './report/bench-progress.ts'
import { compare, type Failure, type Figures, measureAlone, whatIsMissing } from './report/compare.ts'
import { documentFigures, printControl, printFigures, printHeading } from './report/figure-text.ts'
import { measureCommand } from './report/measure-command.ts'
import { profileRow } from './report/profile.ts'
import type { BenchParts, Row } from './rows/row.ts'
import { ROWS } from './rows/rows.ts'
import { BenchFleet } from './sides/bench-fleet.ts'
import { startConstantServer } from './sides/constant-server.ts'
import { ProxyWorld } from './sides/proxy-world.ts'

const MIB = 1_048_576
const CONTROL_ROUNDS = 3
/** The single capture is larger than the other sets, so that the start-up cost of HTTP and curl is a small part. */
const SINGLE_TIMES = 4
const BUDGET_MS = 20 * 60_000

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    'size-mib': { type: 'string' },
    rounds: { type: 'string' },
    quick: { type: 'boolean' },
    pcap: { type: 'string' },
    json: { type: 'string' },
    document: { type: 'boolean' },
    keep: { type: 'boolean' },
  },
})

/** These do not measure a file whose size could be set, and they include their peers and rounds. */
const ALONE: Readonly<Record<string, () => Promise<void>>> = {
  // Requests and grants of a scheduler that runs as in the gateway.
  queue: () => runProgram(printQueueFigures),
  // Packets on a wire.
  capture: printCaptureFigures,
  // How long people wait beside exports.
  exports: () => runProgram(printExportFigures),
  // The cost of authentication.
  tokens: () => runProgram(printTokenFigures),
  // The time until the page shows what was clicked.
  page: () => runProgram(printPageFigures),
  // The cost of the store's index.
  index: printIndexFigures,
}
const alone = positionals.find((name) => Object.hasOwn(ALONE, name))
if (alone !== undefined) {
  if (positionals.length > 1 || Object.keys(values).length > 0) {
    refuse(`${alone} runs alone and takes no options; leave the rest out`)
  }
  await ALONE[alone]?.()
  process.exit()
}
const isProfile = positionals[0] === 'profile'
const chosen = chooseRows(isProfile ? positionals.slice(1) : positionals)
if (isProfile && positionals.length !== 2) refuse('name one row to profile, as in: profile filter-tcp-443')
const bytes = wholeNumber('size-mib', 512) * MIB
const rounds = values.quick ? 1 : wholeNumber('rounds', 5)
const folder = join(tmpdir(), `capfleet-bench-${bytes / MIB}`)
const singleBytes = values.quick || isProfile ? bytes : SINGLE_TIMES * bytes
const results = new Map<string, Figures | Failure>()
const startMs = performance.now()
let failed = false
try {
  await runAll()
} finally {
  if (!values.keep) await rm(folder, { recursive: true, force: true })
}
if (values.json) await writeFile(values.json, `${JSON.stringify([...results.values()], null, 2)}\n`)
if (values.document) await documentFigures(ROWS, results, conditions())
if (failed) process.exitCode = 1

async function runAll(): Promise<void> {
  await using fleet = await BenchFleet.create(join(folder, 'fleet'))
  await using owned = new AsyncDisposableStack()
  let world: Promise<ProxyWorld> | undefined
  const proxies = () => {
    world ??= ProxyWorld.start().then((started) => owned.use(started))
    return world
  }
  const inputs = new BenchInputs(folder, { bytes, singleBytes, own: values.pcap })
  const parts = { inputs, fleet, proxies }
  const [first] = chosen
  if (isProfile && first) return await profileRow(first, { ...parts, owned })
  const single = await inputs.single()
  printHeading()
  await printControls(single.paths[0] ?? '', single.traffic.bytes)
  const progress = new BenchProgress(chosen.length)
  for (const [index, row] of chosen.entries()) {
    progress.begin(row.name)
    await run(row, parts, { progress, endMs: rowEndMs(chosen.length - index) })
  }
  await printControls(single.paths[0] ?? '', single.traffic.bytes)
}

/** A row begins no further round after this time: the remaining rows share the remaining time. */
function rowEndMs(rowsLeft: number): number {
  const nowMs = performance.now()
  return nowMs + (BUDGET_MS - (nowMs - startMs)) / rowsLeft
}

interface Turn {
  readonly progress: BenchProgress
  readonly endMs: number
}

async function run(row: Row, parts: Omit<BenchParts, 'owned'>, { progress, endMs }: Turn): Promise<void> {
  const missing = whatIsMissing(row)
  try {
    if (missing !== undefined) throw new Error(missing)
    await using owned = new AsyncDisposableStack()
    const figures = await compare(row, await row.make({ ...parts, owned }), { rounds, endMs })
    results.set(row.name, figures)
    progress.end()
    printFigures(figures)
  } catch (error) {
    failed = true
    const message = error instanceof Error ? error.message : String(error)
    results.set(row.name, { name: row.name, failed: message })
    progress.end()
    process.stdout.write(`${row.name}: failed: ${message}\n`)
  }
}

async function printControls(path: string, inputBytes: number): Promise<void> {
  const cat = { label: 'cat', run: () => measureCommand('cat', [path]) }
  printControl(await measureAlone(cat, CONTROL_ROUNDS), inputBytes)
  await using server = await startConstantServer(inputBytes)
  const get = () => measureCommand('curl', ['-fsS', server.url, '-o', '/dev/null'], { pid: process.pid })
  printControl(await measureAlone({ label: 'constant HTTP', run: get }, CONTROL_ROUNDS), inputBytes)
}

/** The subject of the figures, for the document. */
function conditions(): string {
  const single = values.pcap === undefined ? `${singleBytes / MIB} MiB` : 'own captures'
  const counted = [...results.values()].flatMap((result) => ('rounds' in result ? result.rounds : []))
  const roundsText = `${Math.min(...counted)} to ${Math.max(...counted)} rounds`
  const machine = `${availableParallelism()} processors`
  return `The single capture: ${single}; the other sets of files: ${bytes / MIB} MiB each; ${roundsText}; ${machine}.`
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

function chooseRows(names: readonly string[]): readonly Row[] {
  if (names.length === 0 || names.includes('all')) return ROWS
  const unknown = names.find((name) => !ROWS.some((row) => row.name.startsWith(name)))
  if (unknown !== undefined) {
    const known = [...ROWS.map((row) => row.name), ...Object.keys(ALONE)]
    refuse(`no row "${unknown}"; there are ${known.join(', ')}`)
  }
  return ROWS.filter((row) => names.some((name) => row.name.startsWith(name)))
}
