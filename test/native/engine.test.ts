// The engine's own tests (GoogleTest under ASan and UBSan), run by ctest.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

test('every engine test passes under address and undefined-behaviour sanitizers', (t) => {
  const ctest = spawnSync(
    'ctest',
    ['--test-dir', 'native/build-test', '--output-on-failure', '--no-tests=error', '-j2'],
    {
      cwd: REPOSITORY_ROOT,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    },
  )
  assert.equal(ctest.status, 0, `${ctest.stdout}\n${ctest.stderr}`)
  const [, passed] = /100% tests passed, 0 tests failed out of (\d+)/.exec(ctest.stdout) ?? []
  assert.ok(Number(passed) > 0, ctest.stdout)
  t.diagnostic(`${passed} engine tests passed`)
})
