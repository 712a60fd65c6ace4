// Runs test files. A file that failed is run once more, alone, when all have ended: if it passes then, the run is
// green, and its last lines and test-results/flaky.txt name the file and its first failure. This is a seat belt for
// machines that are busy with something else: a test that needs it has a fault, which is to be mended.
//
//   node .ci/run-tests.mjs [--once|--night] PATTERN...
//   node .ci/run-tests.mjs --quick
// --once: no second run. --quick: the files that start no process, once. --night: a file that needed its second run in an earlier night too fails the run; the nights are kept in
// test-results/flaky-nights.txt. How long each file took is in test-results/times.txt, the slowest last.
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
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { importsOf } from './setup/imports.mjs'

// Of each test, hook and suite that sets no limit itself; Node.js lets no test inherit the limit of its suite then. It is
// for what would never end: a test is not to fail because the machine is busy. TEST_LIMIT_MS in the tests is the same.
const LIMITS = '--test-timeout=1200000'
/** When more files fail, it is not by chance. */
const MOST_SECOND_RUNS = 5
const path = (name) => fileURLToPath(new URL(name, import.meta.url))

/** Runs the files and prints the report. Returns whether all passed, and by file the first failure and the time. */
function run(patterns, concurrency) {
  const folder = mkdtempSync(join(tmpdir(), 'capfleet-run-tests-'))
  const list = join(folder, 'record.jsonl')
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
      { stdio: 'inherit' },
    )
    const lines = readFileSync(list, 'utf8').split('\n')
    return {
      passed: status === 0,
      ...readRecord(lines.filter((line) => line !== '').map((line) => JSON.parse(line))),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * What run-record.mjs has written. The file of a failed test is where it was made, perhaps by a module that files share: the
 * summary of a file says whether it failed. One whose process ended too early has none, and fails by its name.
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

/** Test files that start no process, because nothing that they import, directly or by another file, is node:child_process. */
function quickFiles() {
  const files = globSync('test/**/*.test.ts').sort()
  return files.filter((file) => !importsOf([file]).packages.has('node:child_process'))
}

/** Writes how long each file took. */
function keepTimes(times) {
  const rows = [...times].sort(([, a], [, b]) => a - b)
  const text = rows
    .map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(8)} s  ${relative('', file)}\n`)
    .join('')
  writeFileSync(join(RESULTS, 'times.txt'), text)
}

/** Adds the flaky files of this night, and returns those that an earlier night has too. */
function addNight(files) {
  const record = join(RESULTS, 'flaky-nights.txt')
  const before = existsSync(record) ? readFileSync(record, 'utf8').split('\n') : []
  const night = new Date().toISOString()
  for (const file of files) appendFileSync(record, `${night} ${file}\n`)
  return files.filter((file) => before.some((line) => line.endsWith(` ${file}`)))
}

// No test needs what is beside the repository; a few compare with it too.
const beside = ['captures', 'appliance-api.md', 'api-decisions.md'].map((name) => `../shared/${name}`)
const found = beside.filter((name) => existsSync(path(`../${name}`)))
process.stdout.write(`optional, not in the repository: ${found.join(', ') || 'nothing'}\n`)

const RESULTS = 'test-results'
const option = /^--(once|night|quick)$/.exec(process.argv[2])?.[1]
mkdirSync(RESULTS, { recursive: true })
rmSync(join(RESULTS, 'flaky.txt'), { force: true })
const first = run(option === 'quick' ? quickFiles() : process.argv.slice(option === undefined ? 2 : 3), 3)
keepTimes(first.times)
if (first.passed) process.exit(0)
const failed = [...first.failures]
// Nothing is known of a run that failed otherwise, or was ended before all files had run.
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
