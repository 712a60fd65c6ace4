// A test file that something keeps alive after its tests fails with a message, and no other file does.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tempFolder } from './support/temp-folder.ts'

const LIMIT = fileURLToPath(new URL('support/file-limit.ts', import.meta.url))
const LEAK = "import { createServer } from 'node:net'\ncreateServer().listen(0)\n"
const PASSES = "import { test } from 'node:test'\ntest('passes', () => {})\n"

async function run(text: string, limitMs: number) {
  await using folder = await tempFolder()
  const file = join(folder.path, 'made.test.mjs')
  await writeFile(file, text)
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  return spawnSync(process.execPath, ['--import', LIMIT, '--test', '--test-reporter=spec', file], {
    encoding: 'utf8',
    env: { ...env, FILE_LIMIT_MS: String(limitMs) },
    timeout: 60_000,
  })
}

test('a file that is kept alive fails, and says by what', async () => {
  const { status, stdout } = await run(PASSES + LEAK, 200)
  assert.equal(status, 1)
  assert.match(stdout, /the tests have ended, the file has not within 200 ms: it has .*TCPServerWrap/)
})

test('a file that ends with its tests passes, without a wait', async () => {
  const { status, stdout } = await run(PASSES, 3_600_000)
  assert.equal(status, 0, stdout)
})
