// `npm test -- FILE...` sets up exactly what these files need.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ALL_NEEDS, NEEDS, needsOf } from '../.ci/setup/test-needs.mjs'
import { REPOSITORY_ROOT } from './support/repository-files.ts'

test('a file needs what it is named for, and what the modules that it imports are', () => {
  assert.deepEqual([...needsOf(['test/helm/upgrades.test.ts'])], ['python', 'chart'])
  assert.deepEqual([...needsOf(['test/src/gateway/export/target/s3-target.test.ts'])], ['python', 's3'])
  assert.deepEqual([...needsOf(['./test/native/engine.test.ts'])], ['engine', 'threads'])
  // Through test/support/live/busy-capture.ts and others.
  assert.ok(needsOf(['test/e2e/packets/downloads-while-capturing.test.ts']).has('engine'))
  assert.deepEqual([...needsOf(['test/src/shared/query/time/query-time.test.ts'])], [])
})

test('a pattern needs everything', () => {
  assert.deepEqual(needsOf(['test/src/shared/query/time/query-time.test.ts', 'test/**/*.test.ts']), ALL_NEEDS)
})

test('the files that need something are there', () => {
  const gone = Object.keys(NEEDS).filter((file) => !existsSync(join(REPOSITORY_ROOT, file)))
  assert.deepEqual(gone, [])
})
