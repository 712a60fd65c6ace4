import assert from 'node:assert/strict'
import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { REPOSITORY_ROOT } from '../../../support/repository-files.ts'

/** A program that prints when it runs, and whether it ended on its own after it was told to stop. */
async function startProgram(t: TestContext, afterStop: string): Promise<ChildProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'capfleet-program-'))
  t.after(() => rm(folder, { recursive: true }))
  const script = join(folder, 'program.ts')
  await writeFile(
    script,
    `import { aborted, runProgram } from '${REPOSITORY_ROOT}src/shared/base/program.ts'
     import { CapfleetError } from '${REPOSITORY_ROOT}src/shared/base/error.ts'
     await runProgram(async (signal) => {
       const alive = setInterval(() => undefined, 1000)
       process.send?.('running')
       await aborted(signal)
       clearInterval(alive)
       ${afterStop}
       void CapfleetError
     })`,
  )
  const child = fork(script, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  await once(child, 'message')
  return child
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal} ends a program cleanly`, async (t) => {
    const child = await startProgram(t, '')
    child.kill(signal)
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })
}

test('a program interrupted by Ctrl-C prints nothing and ends with status 130', async (t) => {
  const child = await startProgram(t, 'signal.throwIfAborted()')
  assert.ok(child.stderr)
  const errors = text(child.stderr)
  child.kill('SIGINT')
  assert.deepEqual(await once(child, 'exit'), [130, null])
  assert.equal(await errors, '')
})

test("the parent's end ends a program cleanly", async (t) => {
  const child = await startProgram(t, '')
  child.disconnect()
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

test('one Ctrl-C that arrives twice, from the terminal and from npm, is one', async (t) => {
  const child = await startProgram(
    t,
    "process.send('stopping'); await new Promise((resolve) => process.once('message', resolve))",
  )
  child.kill('SIGINT')
  await once(child, 'message')
  child.kill('SIGINT')
  child.send('finish')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

test('a second signal ends a program that hangs while it stops', async (t) => {
  const child = await startProgram(t, 'await new Promise((resolve) => setTimeout(resolve, 60_000))')
  const asking = setInterval(() => child.kill('SIGINT'), 200)
  t.after(() => clearInterval(asking))
  assert.deepEqual(await once(child, 'exit'), [130, null])
})

test('closed output, and a full disk as standard output, end a program with at most one line', () => {
  const script = `import { runProgram } from '${REPOSITORY_ROOT}src/shared/base/program.ts'
    await runProgram(async () => {
      for (let count = 0; count < 100; count += 1) await new Promise((done) => process.stdout.write('x'.repeat(65_536), done))
    })`
  const shell = (rest: string) =>
    spawnSync(
      'bash',
      ['--norc', '-o', 'pipefail', '-c', `"$NODE" --input-type=module -e "$SCRIPT" ${rest}`],
      {
        encoding: 'utf8',
        env: { ...process.env, NODE: process.execPath, SCRIPT: script },
      },
    )
  const left = shell('| true')
  assert.deepEqual([left.status, left.stderr], [1, ''])
  const full = shell('> /dev/full')
  assert.equal(full.status, 1)
  assert.match(full.stderr, /^capfleet: standard output: ENOSPC: [^\n]*\n$/)
})

test('an error is one line on stderr and exit code 1', async (t) => {
  const child = await startProgram(t, "throw new CapfleetError('bad-config', 'listen.port: taken')")
  assert.ok(child.stderr)
  const errors = text(child.stderr)
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [1, null])
  assert.equal(await errors, 'capfleet: listen.port: taken [bad-config]\n')
})
