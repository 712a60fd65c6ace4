// Every fuzz target over its corpus, built with sanitizers; `npm run fuzz` searches for more inputs.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

const FUZZ = join(REPOSITORY_ROOT, 'test/fuzz')
const PROGRAMS = join(REPOSITORY_ROOT, 'native/build-test/fuzz')

const declared = [
  ...readFileSync(join(FUZZ, 'CMakeLists.txt'), 'utf8').matchAll(/^capfleet_fuzz_target\((\w+)/gm),
].map(([, name = '']) => name)

test('every fuzz target has a corpus, and every corpus a target', () => {
  assert.ok(declared.length >= 6)
  assert.deepEqual(readdirSync(join(FUZZ, 'corpus')).sort(), declared.toSorted())
})

describe('the property of each fuzz target holds over its corpus', () => {
  for (const target of declared) {
    test(target, () => {
      const corpus = join(FUZZ, 'corpus', target)
      const run = spawnSync(join(PROGRAMS, `${target}_replay`), [corpus], { encoding: 'utf8' })
      assert.equal(run.error, undefined, 'the programs are built by: node .ci/setup.mjs --test')
      assert.equal(run.status, 0, run.stderr)
      assert.match(run.stdout, new RegExp(`^${readdirSync(corpus).length} inputs`))
    })
  }
})
