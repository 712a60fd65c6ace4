/**
 * Loaded by .ci/run-tests.mjs before each test file: Node limits the time of a test, but not of a file whose tests
 * have ended while something they opened keeps it alive. Such a file fails here, and lists what keeps it alive. It
 * also keeps tests from hanging on a file operation whose completion glibc lost, and notes the file's processor time.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { after } from 'node:test'
import { importSmallHttp } from '../../src/shared/base/small-http.ts'
import { pulseThreadPool } from '../../src/shared/base/thread-pool-pulse.ts'
import { WAIT_LIMIT_MS } from './test-limits.ts'

/** The time that the file's own hooks get to close what is open. */
const LIMIT_MS = Number(process.env.FILE_LIMIT_MS ?? WAIT_LIMIT_MS)

/** Where run-tests.mjs wants to have the processor times. */
const TIMES = process.env.CAPFLEET_PROCESSOR_TIMES
const TICK_MS = 10

importSmallHttp()
pulseThreadPool()
if (TIMES !== undefined && process.env.NODE_TEST_CONTEXT !== undefined)
  process.on('exit', () => {
    // User and system time, its own and that of the programs that it started: fields 14 to 17 of stat(5).
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    appendFileSync(TIMES, `${JSON.stringify({ file: process.argv[1], usedMs: ticks * TICK_MS })}\n`)
  })

after(() => {
  setTimeout(() => {
    const left = process.getActiveResourcesInfo().join(', ')
    process.stderr.write(`the tests have ended, the file has not within ${LIMIT_MS} ms: it has ${left}\n`)
    process.exit(1)
  }, LIMIT_MS).unref()
})
