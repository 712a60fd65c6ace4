// The error table of the README and the one of the code say the same.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ERROR_KINDS } from '../src/base/error.ts'
import { REPOSITORY_ROOT, repositoryFiles } from './support/repository-files.ts'

const readme = readFileSync(join(REPOSITORY_ROOT, 'README.md'), 'utf8')

function readmeRows(): Map<string, unknown> {
  const rows = readme.matchAll(/^\| `([a-z0-9-]+)` \| (\d{3}) \| (yes|no) \| (caller|device|ours) \|/gm)
  return new Map(
    [...rows].map(([, code = '', status, retry, blame]) => [
      code,
      { status: Number(status), retry: retry === 'yes', blame },
    ]),
  )
}

test('the README lists every error code with its status, whether a retry can help, and whose fault it is', () => {
  const table = Object.entries(ERROR_KINDS).map(([code, { status, retry, blame }]) => [
    code,
    { status, retry, blame },
  ])
  assert.deepEqual(Object.fromEntries([...readmeRows()].sort()), Object.fromEntries(table.sort()))
})

test('every error code is used, and every code in use is in the table', () => {
  const used = new Set<string>()
  for (const path of repositoryFiles().filter((name) => /^(src|appliance|native)\/.*\.(ts|cc)$/.test(name))) {
    const text = readFileSync(join(REPOSITORY_ROOT, path), 'utf8')
    if (path === 'src/base/error.ts') continue
    for (const code of Object.keys(ERROR_KINDS))
      if (text.includes(`'${code}'`) || text.includes(`"${code}"`)) used.add(code)
  }
  assert.deepEqual(
    Object.keys(ERROR_KINDS).filter((code) => !used.has(code)),
    [],
  )
})
