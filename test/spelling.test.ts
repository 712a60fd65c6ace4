// The spelling of documents, by a list of common mistakes; names in code are not words.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY_ROOT, repositoryFiles } from './support/repository-files.ts'
import { skipWithout } from './support/set-up-tools.ts'

const PYTHON = join(REPOSITORY_ROOT, '.venv/bin/python')
const WITHOUT_CODESPELL = skipWithout(
  existsSync(join(REPOSITORY_ROOT, '.venv/bin/codespell')),
  'codespell is not installed; `node .ci/setup.mjs --test` brings it',
)
const NAMES = String.raw`\w*[a-z][A-Z]\w*`

/** "FILE:LINE: wrong ==> right" for each mistake. */
function mistakes(paths: readonly string[], input = ''): readonly string[] {
  const args = ['-m', 'codespell_lib', '--ignore-regex', NAMES, ...paths]
  const { stdout, stderr, error } = spawnSync(PYTHON, args, { cwd: REPOSITORY_ROOT, input, encoding: 'utf8' })
  if (error !== undefined || stderr.includes('No module')) throw error ?? new Error(stderr)
  return stdout.split('\n').filter((line) => line.includes('==>'))
}

test('no document has a common spelling mistake', { skip: WITHOUT_CODESPELL }, () => {
  const documents = repositoryFiles().filter((path) => path.endsWith('.md'))
  assert.ok(documents.length > 40)
  assert.deepEqual(mistakes(documents), [])
})

test('a planted mistake is seen, and a name is not one', { skip: WITHOUT_CODESPELL }, () => {
  const found = mistakes(['-'], 'The begining of beginNs.\n')
  assert.equal(found.length, 1)
  assert.match(found[0] ?? '', /begining ==> beginning/)
})
