// No limit of a test is so short that a busy machine reaches it, and no test lets time pass without a reason.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY_ROOT, repositoryFiles } from './support/repository-files.ts'
import { TEST_LIMIT_MS } from './support/test-limits.ts'

/** The name and the options of a suite or test, up to its function. */
const HEAD = /^[ \t]*(?:describe|test)\((?:(?!=>|\bfunction\b)[\s\S])*/gm
const LIMIT = /\btimeout: ([^,}\n]+)/

/** Suites and tests with their own limits, and the limit for any test. */
function shortLimits(text: string): string[] {
  return [...text.matchAll(HEAD)].flatMap(([head]) => {
    const limit = LIMIT.exec(head)?.[1]?.trim()
    return limit === undefined || limit.startsWith('TEST_LIMIT_MS +') ? [] : [limit]
  })
}

const read = (path: string) => readFile(join(REPOSITORY_ROOT, path), 'utf8')

test('a suite or a test sets a limit only where it may take longer than others', async () => {
  const found: string[] = []
  for (const path of repositoryFiles().filter((path) => /^test\/.*\.ts$/.test(path)))
    for (const limit of shortLimits(await read(path))) found.push(`${path}: timeout: ${limit}`)
  assert.deepEqual(found, [])
})

test('negative control: short limits are found', () => {
  const suite = (options: string) => shortLimits(`describe('one', ${options} () => {})`)
  assert.deepEqual(suite('{ skip, timeout: 240_000 },'), ['240_000'])
  assert.deepEqual(suite('{\n  timeout: LIMIT_MS,\n},'), ['LIMIT_MS'])
  assert.deepEqual(suite('{ timeout: TEST_LIMIT_MS + COUNT * 600 },'), [])
  assert.deepEqual(shortLimits("test('one', () => call({ timeout: 5 }))"), [])
})

test('the run of the tests has the limit that they reckon with', async () => {
  const limits = (await read('.ci/run-tests.mjs')).match(/(?<=--test-timeout=)\d+/g)
  assert.deepEqual(limits?.map(Number), [TEST_LIMIT_MS])
})

/** Files that contain the text of another program, which sleeps. */
const TEXTS_THAT_SLEEP = new Set([
  'test/run-tests.test.ts',
  'test/src/shared/base/log.test.ts',
  'test/src/shared/base/program.test.ts',
])

test('a test that lets time pass says why', async () => {
  const found: string[] = []
  for (const path of repositoryFiles().filter((path) => /^test\/.*\.(?:test|night)\.ts$/.test(path)))
    if (/\bsetTimeout(?:\(| as )/.test(await read(path))) found.push(path)
  assert.deepEqual(new Set(found), TEXTS_THAT_SLEEP, 'wait for an event (eventually), or use pause()')
})
