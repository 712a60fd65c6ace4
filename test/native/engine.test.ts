// The engine's own tests: one GoogleTest program, built with address and undefined-behaviour sanitizers.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

const PROGRAM = 'native/build-test/engine-tests/engine_tests'

test('every engine test passes under address and undefined-behaviour sanitizers', (t) => {
  const run = spawnSync(PROGRAM, ['--gtest_brief=0'], {
    cwd: REPOSITORY_ROOT,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  assert.equal(run.error, undefined, `${PROGRAM} is built by: node .ci/setup.mjs --test`)
  const output = `${run.stdout}\n${run.stderr}`
  assert.equal(run.status, 0, output.slice(-20_000))
  const passed = Number(/\[ {2}PASSED {2}\] (\d+) tests?/.exec(output)?.[1])
  assert.ok(passed > 50, `${passed} tests passed`)
  t.diagnostic(`${passed} engine tests passed`)
  // A skipped test prints "file:line: Skipped", its reason, and its name.
  for (const [, reason, name] of output.matchAll(/: Skipped\n([^\n]*)\n+\[ {2}SKIPPED \] (\S+) \(/g)) {
    t.diagnostic(`skipped ${name}: ${reason}`)
  }
})
