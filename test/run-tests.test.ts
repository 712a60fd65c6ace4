// A file that fails once is run again, alone; a file that fails twice fails the run, and so do many failures at once.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY_ROOT } from './support/repository-files.ts'
import { tempFolder } from './support/temp-folder.ts'

const PASSES = "import { test } from 'node:test'\ntest('passes', () => {})\n"
const FAILS = "import { test } from 'node:test'\ntest('is wrong', () => { throw new Error('no\\nmore') })\n"
const DIES = `${PASSES}setTimeout(() => process.exit(3), 20)\ntest('hangs', () => new Promise(() => setTimeout(() => {}, 1e6)))\n`
/** Fails when it runs for the first time. */
const FAILS_ONCE = `import { existsSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
describe('some', () => test('is early', () => {
  if (existsSync('seen')) return
  writeFileSync('seen', '')
  throw new Error('it was too early')
}))
`

/** Ends the run of all files as soon as a failure of another file is recorded. */
const KILLS = `import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
test('kills', async () => {
  const isNoted = () => globSync('capfleet-run-tests-*/record.jsonl').some((path) => readFileSync(path).length > 0)
  while (!isNoted()) await new Promise((resolve) => setTimeout(resolve, 10))
  process.kill(process.ppid, 'SIGKILL')
})
`

async function run(files: Readonly<Record<string, string>>, ...options: string[]) {
  await using folder = await tempFolder()
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder.path, name), text)
  return await runIn(folder.path, options)
}

async function runIn(path: string, options: readonly string[]) {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { status, stdout } = spawnSync(
    process.execPath,
    [join(REPOSITORY_ROOT, '.ci/run-tests.mjs'), ...options, '*.test.mjs'],
    { cwd: path, encoding: 'utf8', env: { ...env, TMPDIR: path } },
  )
  const resultOf = (name: string) => readFile(join(path, 'test-results', name), 'utf8').catch(() => undefined)
  return { status, stdout, flaky: await resultOf('flaky.txt'), times: await resultOf('times.txt') }
}

test('a test that another module makes fails its file, also when that is run once more', async () => {
  const shared =
    "import { test } from 'node:test'\nexport const contract = () => test('is shared', () => { throw new Error('no more') })\n"
  const { status, stdout } = await run({
    'shared.mjs': shared,
    'a.test.mjs': "import { contract } from './shared.mjs'\ncontract()\n",
  })
  assert.equal(status, 1, stdout)
})

test('all pass: one run', async () => {
  const { status, stdout, flaky, times } = await run({ 'a.test.mjs': PASSES })
  assert.deepEqual([status, flaky], [0, undefined])
  assert.match(times ?? '', /^ +\d+\.\d s +\d+\.\d s used {2}a\.test\.mjs\n$/)
  assert.ok(!stdout.includes('retried, one at a time'))
  assert.match(stdout, /^optional, not in the repository: \S/)
})

test('a file that fails once is named, and the run is green', async () => {
  const { status, stdout, flaky } = await run({ 'a.test.mjs': PASSES, 'b.test.mjs': FAILS_ONCE })
  assert.equal(status, 0, stdout)
  const line = 'flaky: b.test.mjs: first failure: is early: it was too early\n'
  assert.equal(flaky, line)
  assert.ok(stdout.endsWith(line))
})

test('a file that fails twice fails the run, however the others end', async () => {
  for (const text of [FAILS, DIES]) {
    const { status, stdout, flaky } = await run({ 'b.test.mjs': FAILS_ONCE, 'c.test.mjs': text })
    assert.equal(status, 1, stdout)
    assert.match(flaky ?? '', /^flaky: b\.test\.mjs: [^\n]+\n$/)
    assert.match(stdout, /retried, one at a time: (b\.test\.mjs, c|c\.test\.mjs, b)\.test\.mjs\n/)
  }
})

test('many files that fail, or one that is run by its name: no second run', async () => {
  const many = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => [`${name}.test.mjs`, FAILS]))
  for (const { status, stdout } of [await run(many), await run({ 'b.test.mjs': FAILS_ONCE }, '--once')]) {
    assert.equal(status, 1)
    assert.ok(!stdout.includes('retried, one at a time'))
  }
})

test('a run that is killed fails: the results of the other files are unknown', async () => {
  const { status, stdout } = await run({ 'b.test.mjs': FAILS_ONCE, 'c.test.mjs': KILLS })
  assert.equal(status, 1)
  assert.ok(!stdout.includes('retried, one at a time'))
})

test('a file that is flaky in a second night fails that night', async () => {
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'b.test.mjs'), FAILS_ONCE)
  const nights: (number | null)[] = []
  for (let night = 0; night < 2; night += 1) {
    await rm(join(folder.path, 'seen'), { force: true })
    const { status, stdout, flaky } = await runIn(folder.path, ['--night'])
    nights.push(status)
    assert.match(flaky ?? '', /^flaky: b\.test\.mjs: /)
    assert.equal(stdout.includes('failed on more than one night: b.test.mjs'), night === 1)
  }
  assert.deepEqual(nights, [0, 1])
})
