// Runs test files. A file that failed is run once more, alone, when all have ended: if it then passes, the run is
// green, and its last lines and test-results/flaky.txt name the file and its first failure. This is a safety net for
// busy machines: a test that needs it has a bug, which must be fixed.
//
//   node .ci/run-tests.mjs [--once|--night] PATTERN...
//   node .ci/run-tests.mjs --quick
// --once: no second run. --quick: the files that start no process, once. --night: a file that also needed its second
// run in an earlier night fails the run; the nights are kept in test-results/flaky-nights.txt. The duration and the
// processor time of each file, with the programs that it starts, are in test-results/times.txt, slowest last.
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { importsOf } from './setup/imports.mjs'

// For each test, hook and suite that sets no limit itself; with it, Node.js does not let tests inherit the limit of
// their suite. It only ends what would never finish: a test must not fail because the machine is busy. TEST_LIMIT_MS
// in the tests is the same.
const LIMITS = '--test-timeout=1200000'
/** More files than processors: most of them wait for something for half of their time. */
const AT_ONCE = availableParallelism() + 2
/** If more files fail, it is not by chance. */
const MOST_SECOND_RUNS = 5
const path = (name) => fileURLToPath(new URL(name, import.meta.url))
/** Without it each test file and each program that it starts strips and compiles all of its modules again. */
const ENVIRONMENT = { NODE_COMPILE_CACHE: path('../node_modules/.cache/capfleet'), ...process.env }

/**
 * Runs the files and prints the report. Returns whether all passed, and for each file its first failure, its
 * duration and its processor time.
 */
function run(patterns, concurrency) {
  const folder = mkdtempSync(join(tmpdir(), 'capfleet-run-tests-'))
  const list = join(folder, 'record.jsonl')
  const used = join(folder, 'processor-times.jsonl')
  try {
    const { status } = spawnSync(
      process.execPath,
      [
        ...[
          '--import',
          path('../test/support/file-limit.ts'),
          '--test',
          `--test-concurrency=${concurrency}`,
          LIMITS,
        ],
        ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
        ...[`--test-reporter=${path('run-record.mjs')}`, `--test-reporter-destination=${list}`],
        ...patterns,
      ],
      { stdio: 'inherit', env: { ...ENVIRONMENT, CAPFLEET_PROCESSOR_TIMES: used } },
    )
    return {
      passed: status === 0,
      ...readRecord(rowsOf(list)),
      usedMs: new Map(rowsOf(used).map(({ file, usedMs }) => [file, usedMs])),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The lines of a file of JSON; none if it does not exist, because no test file ended. */
function rowsOf(path) {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line))
}

/**
 * Parses what run-record.mjs has written. A failed test's file is where it was defined, possibly a shared module; only
 * a file's summary says whether the file failed. A file whose process ended too early has no summary, and fails by its
 * name.
 */
function readRecord(rows) {
  const failures = new Map()
  const times = new Map()
  let isWhole = false
  let first
  for (const { file, tookMs, success, test, message } of rows) {
    if (test !== undefined) {
      if (file !== undefined && resolve(test) === file) failures.set(file, `${test}: ${message}`)
      else first ??= `${test}: ${message}`
    } else if (file === undefined) isWhole = true
    else {
      times.set(file, tookMs)
      if (!success) failures.set(file, first ?? 'it has failed')
      first = undefined
    }
  }
  return { isWhole, failures, times }
}

/** Test files that start no process, because none of their direct or indirect imports is node:child_process. */
function quickFiles() {
  const files = globSync('test/**/*.test.ts').sort()
  return files.filter((file) => !importsOf([file]).packages.has('node:child_process'))
}

/** Writes the duration and the processor time of each file. */
function keepTimes({ times, usedMs }) {
  const seconds = (ms = 0) => (ms / 1000).toFixed(1).padStart(8)
  const rows = [...times].sort(([, a], [, b]) => a - b)
  const text = rows
    .map(([file, ms]) => `${seconds(ms)} s ${seconds(usedMs.get(file))} s used  ${relative('', file)}\n`)
    .join('')
  writeFileSync(join(RESULTS, 'times.txt'), text)
}

/** Adds the flaky files of this night, and returns those that were flaky in an earlier night too. */
function addNight(files) {
  const record = join(RESULTS, 'flaky-nights.txt')
  const before = existsSync(record) ? readFileSync(record, 'utf8').split('\n') : []
  const night = new Date().toISOString()
  for (const file of files) appendFileSync(record, `${night} ${file}\n`)
  return files.filter((file) => before.some((line) => line.endsWith(` ${file}`)))
}

// No test requires files outside the repository; a few compare with them if they exist.
const beside = ['captures', 'appliance-api.md', 'api-decisions.md'].map((name) => `../shared/${name}`)
const found = beside.filter((name) => existsSync(path(`../${name}`)))
process.stdout.write(`optional, not in the repository: ${found.join(', ') || 'nothing'}\n`)

const RESULTS = 'test-results'
const option = /^--(once|night|quick)$/.exec(process.argv[2])?.[1]
mkdirSync(RESULTS, { recursive: true })
rmSync(join(RESULTS, 'flaky.txt'), { force: true })
const first = run(
  option === 'quick' ? quickFiles() : process.argv.slice(option === undefined ? 2 : 3),
  AT_ONCE,
)
keepTimes(first)
if (first.passed) process.exit(0)
const failed = [...first.failures]
// Nothing is known about a run that failed in another way, or was ended before all files had run.
const canRepeat =
  option !== 'once' &&
  option !== 'quick' &&
  first.isWhole &&
  failed.length > 0 &&
  failed.length <= MOST_SECOND_RUNS
if (!canRepeat) process.exit(1)

process.stdout.write(`\nretried, one at a time: ${failed.map(([file]) => relative('', file)).join(', ')}\n`)
const flaky = failed.filter(([file]) => run([file], 1).passed)
let passed = flaky.length === failed.length
const lines = flaky
  .map(([file, failure]) => `flaky: ${relative('', file)}: first failure: ${failure}\n`)
  .join('')
writeFileSync(join(RESULTS, 'flaky.txt'), lines)
if (option === 'night') {
  const again = addNight(flaky.map(([file]) => relative('', file)))
  if (again.length > 0) passed = false
  for (const file of again) process.stdout.write(`failed on more than one night: ${file}\n`)
}
process.stdout.write(lines)
process.exitCode = passed ? 0 : 1
