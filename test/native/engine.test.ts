// The engine's own tests, in three GoogleTest programs: all tests with address and undefined-behaviour sanitizers;
// those of its threaded parts with the thread sanitizer; and without a sanitizer the comparisons of BPF machines, so
// that they can try many filters, and the tests of allowed system calls.
import assert from 'node:assert/strict'
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { type TestContext, test } from 'node:test'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { TEST_LIMIT_MS } from '../support/test-limits.ts'

const PROGRAM = 'native/build-test/engine-tests/engine_tests'
const FILTER_PROGRAM = 'native/build-test/engine-tests/filter_tests'
/** A test that hangs ends here: nothing else can end a program that this process waits for. */
const LIMIT_MS = TEST_LIMIT_MS - 60_000
/** Percentage of the iterations of randomised tests; the night runs all of them. */
const TURNS = { CAPFLEET_TURNS: process.env.CAPFLEET_TURNS ?? '7' }
/** The same under the thread sanitizer, which has a third of the turns anyway. */
const THREADED_TURNS = { CAPFLEET_TURNS: process.env.CAPFLEET_TURNS ?? '12' }
const THREADED_PROGRAM = 'native/build-tsan/engine-tests/engine_tests'
/** The tests write 4 GB in thousands of small files, of which there are never more than some 100 MB. */
const MEMORY = '/dev/shm'
const ROOM_BYTES = 2 ** 30
/** Making files there takes a third of the time that it takes on a disk; the night uses the disk. */
const FOLDER = {
  TMPDIR: process.env.CAPFLEET_LONG !== '1' && hasRoom(MEMORY) ? MEMORY : tmpdir(),
}
/** In its files, but without a second thread; they take long there. */
const NOT_THREADED = [
  'SlabCompressor.RoundTripsAnyBytes',
  'WindowPlanner.DoesNotCutWhereManyRunSideBySide',
  'WindowPlanner.HoldsTheIndexesOfAWindowWhateverTheRangeIs',
  'WindowPlanner.ReadsNoIndexBeyondTheFirstWindow',
]
/** The suites that the threaded program must contain, so that none drops out of its build unnoticed. */
const THREADED_SUITES = [
  'BlockQueue',
  'BufferPool',
  'CaptureWriterTest',
  'ContinuedDownload',
  'Download',
  'LiveCapture',
  'PassedBlocks',
  'PcapngFraming',
  'RegexMatcher',
  'SlabCompressor',
  'StreamCompressorTest',
  'VendorTimeStage',
  'WindowPlanner',
  'WorkerPool',
]

function hasRoom(folder: string): boolean {
  if (!existsSync(folder)) return false
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize > ROOM_BYTES
}

function run(command: string, args: readonly string[], variables = {}): SpawnSyncReturns<string> {
  const env = { ...process.env, ...FOLDER, ...variables }
  const limits = { maxBuffer: 1 << 28, timeout: LIMIT_MS, killSignal: 'SIGKILL' } as const
  return spawnSync(command, args, { cwd: REPOSITORY_ROOT, encoding: 'utf8', env, ...limits })
}

/**
 * The thread sanitizer's shadow memory is at fixed addresses. A kernel with wide address randomisation
 * (vm.mmap_rnd_bits above 28) may map parts of the program there, and then the program exits at its start. So it runs
 * without randomisation, unless that fails: a container may forbid to switch it off.
 */
function runUnderThreadSanitizer(t: TestContext): SpawnSyncReturns<string> {
  const args = [`--gtest_filter=-${NOT_THREADED.join(':')}`]
  const direct = run(THREADED_PROGRAM, args, THREADED_TURNS)
  if (!direct.stderr?.includes('unexpected memory mapping')) return direct
  t.diagnostic(
    'run by setarch -R, because the addresses of this kernel are too random for TSan; where that is forbidden: sysctl vm.mmap_rnd_bits=28',
  )
  return run('setarch', ['-R', THREADED_PROGRAM, ...args], THREADED_TURNS)
}

/** Asserts that every test passed, and prints how many passed and which were skipped; returns the output. */
function assertPassed(t: TestContext, ended: SpawnSyncReturns<string>): string {
  const output = `${ended.stdout}\n${ended.stderr}`
  const isLate = ended.error !== undefined && 'code' in ended.error && ended.error.code === 'ETIMEDOUT'
  assert.ok(!isLate, `not within ${LIMIT_MS} ms, and then it was in: ${output.slice(-2_000)}`)
  assert.equal(ended.error, undefined, 'the engine tests are built by: node .ci/setup.mjs --test')
  const end = `status ${ended.status}, signal ${ended.signal}\n${output.slice(-20_000)}`
  assert.equal(ended.status, 0, end)
  const passed = Number(/\[ {2}PASSED {2}\] (\d+) tests?/.exec(output)?.[1])
  assert.ok(passed > 0, end)
  t.diagnostic(`${passed} engine tests passed`)
  // A skipped test prints "file:line: Skipped", its reason, and its name.
  for (const [, reason, name] of output.matchAll(/: Skipped\n([^\n]*)\n+\[ {2}SKIPPED \] (\S+) \(/g)) {
    t.diagnostic(`skipped ${name}: ${reason}`)
  }
  return output
}

test('every engine test passes under address and undefined-behaviour sanitizers', (t) => {
  const output = assertPassed(t, run(PROGRAM, [], TURNS))
  const ran = Number(/(\d+) tests from \d+ test suites ran/.exec(output)?.[1])
  assert.ok(ran > 50, `${ran} tests ran`)
})

test('20,000 generated filters select what libpcap selects, and compile helpers are confined', (t) => {
  assertPassed(t, run(FILTER_PROGRAM, [], { CAPFLEET_FILTERS: '20000' }))
})

test('the threaded parts pass under the thread sanitizer', (t) => {
  const output = assertPassed(t, runUnderThreadSanitizer(t))
  const suites = [...output.matchAll(/^\[-{10}\] \d+ tests? from (\w+)$/gm)].map(([, name]) => name)
  assert.deepEqual(suites.sort(), THREADED_SUITES)
})
