// Runs test files. A file that failed is run once more, alone, when all have ended: if it passes then, the run is
// green, and its last lines and test-results/flaky.txt name the file and its first failure. This is a seat belt for
// machines that are busy with something else: a test that needs it has a fault, which is to be mended.
//
//   node .ci/run-tests.mjs [--once] PATTERN...     --once: no second run
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

// Of each test, hook and suite that sets no limit itself; Node.js lets no test inherit the limit of its suite then. It is
// for what would never end: a test is not to fail because the machine is busy. TEST_LIMIT_MS in the tests is the same.
const LIMITS = '--test-timeout=1200000'
/** When more files fail, it is not by chance. */
const MOST_SECOND_RUNS = 5
const path = (name) => fileURLToPath(new URL(name, import.meta.url))

/** Runs the files, prints the report, and returns whether all passed and the failures by file. */
function run(patterns, concurrency) {
  const folder = mkdtempSync(join(tmpdir(), 'capfleet-run-tests-'))
  const list = join(folder, 'failures.jsonl')
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
        ...[`--test-reporter=${path('failed-files.mjs')}`, `--test-reporter-destination=${list}`],
        ...patterns,
      ],
      { stdio: 'inherit' },
    )
    const failures = new Map()
    let isWhole = false
    for (const line of readFileSync(list, 'utf8').split('\n')) {
      if (line === '') continue
      const { file, test, message } = JSON.parse(line)
      if (file === undefined) isWhole = true
      else if (!failures.has(file)) failures.set(file, `${test}: ${message}`)
    }
    return { passed: status === 0, isWhole, failures }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const once = process.argv[2] === '--once'
rmSync('test-results', { recursive: true, force: true })
const first = run(process.argv.slice(once ? 3 : 2), 3)
if (first.passed) process.exit(0)
const failed = [...first.failures]
// Nothing is known of a run that failed otherwise, or was ended before all files had run.
if (once || !first.isWhole || failed.length === 0 || failed.length > MOST_SECOND_RUNS) process.exit(1)

process.stdout.write(`\nonce more, alone: ${failed.map(([file]) => relative('', file)).join(', ')}\n`)
let passed = true
const flaky = []
for (const [file, failure] of failed) {
  if (run([file], 1).passed) flaky.push(`flaky: ${relative('', file)}: first failure: ${failure}\n`)
  else passed = false
}
mkdirSync('test-results', { recursive: true })
writeFileSync('test-results/flaky.txt', flaky.join(''))
process.stdout.write(flaky.join(''))
process.exitCode = passed ? 0 : 1
