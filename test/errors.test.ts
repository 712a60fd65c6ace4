// The table of error codes has exactly the codes that the programs use.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ERROR_KINDS } from '../src/shared/base/error.ts'
import { REPOSITORY_ROOT, repositoryFiles } from './support/repository-files.ts'

test('every error code is used, and every code in use is in the table', () => {
  const used = new Set<string>()
  for (const path of repositoryFiles().filter((name) => /^(src|appliance|native)\/.*\.(ts|cc)$/.test(name))) {
    const text = readFileSync(join(REPOSITORY_ROOT, path), 'utf8')
    if (path === 'src/shared/base/error.ts') continue
    for (const code of Object.keys(ERROR_KINDS))
      if (text.includes(`'${code}'`) || text.includes(`"${code}"`)) used.add(code)
  }
  assert.deepEqual(
    Object.keys(ERROR_KINDS).filter((code) => !used.has(code)),
    [],
  )
})
