import assert from 'node:assert/strict'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { runHelper } from '../../../appliance/compile/compile-process.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const never = new AbortController().signal
const LONG_MS = 30_000

/** Runs a shell script as if it were a compile helper. */
async function runScript(script: string, { cpuLimitMs = 0, limitMs = LONG_MS, signal = never } = {}) {
  await using folder = await tempFolder()
  const path = join(folder.path, 'helper')
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o700)
  return await runHelper({ path, cpuLimitMs }, Buffer.from('the text'), { limitMs, signal })
}

test('gives what the helper makes of its input', async () => {
  assert.deepEqual(await runScript('exec cat'), { output: Buffer.from('the text') })
})

test('gives what the helper complains about', async () => {
  assert.deepEqual(await runScript('echo "a mistake" >&2; exit 1'), { problem: 'a mistake' })
})

test('a helper that its processor time or its memory has ended says that the text is too complex', async () => {
  for (const signal of ['KILL', 'ABRT', 'SEGV']) {
    const outcome = await runScript(`kill -${signal} $$`)
    assert.match('problem' in outcome ? outcome.problem : '', /too complex/, signal)
  }
})

test('a helper that is killed by the clock on the wall says nothing about the text', async () => {
  await assert.rejects(runScript('exec sleep 30', { limitMs: 100 }), { code: 'compiler-busy' })
})

test('a helper killed from outside says nothing about the text', async () => {
  for (const signal of ['KILL', 'TERM', 'ALRM']) {
    const killed = runScript(`kill -${signal} $$`, { cpuLimitMs: LONG_MS })
    await assert.rejects(killed, { code: 'compiler-busy' }, signal)
  }
})

test('a helper that writes without end is killed', async () => {
  for (const script of ['exec cat /dev/zero', 'exec cat /dev/zero >&2']) {
    await assert.rejects(
      runScript(script),
      { code: 'internal-error', message: /more than \d+ bytes/ },
      script,
    )
  }
})

test('a helper is killed once no one waits for it', async () => {
  const client = new AbortController()
  const left = runScript('exec sleep 30', { signal: client.signal })
  client.abort(new Error('the client has gone'))
  await assert.rejects(left, /the client has gone/)
})
