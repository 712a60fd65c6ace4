/**
 * Loaded by .ci/run-tests.mjs before each test file: Node limits the time of a test, but not of a file whose tests
 * have ended while something they opened keeps it alive. Such a file fails here, and lists what keeps it alive. It
 * also keeps tests from hanging on a file operation whose completion glibc lost.
 */
import { after } from 'node:test'
import { pulseThreadPool } from '../../src/shared/base/thread-pool-pulse.ts'
import { WAIT_LIMIT_MS } from './test-limits.ts'

/** The time that the file's own hooks get to close what is open. */
const LIMIT_MS = Number(process.env.FILE_LIMIT_MS ?? WAIT_LIMIT_MS)

pulseThreadPool()

after(() => {
  setTimeout(() => {
    const left = process.getActiveResourcesInfo().join(', ')
    process.stderr.write(`the tests have ended, the file has not within ${LIMIT_MS} ms: it has ${left}\n`)
    process.exit(1)
  }, LIMIT_MS).unref()
})
