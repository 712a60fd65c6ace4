// Programs of the machine that sensors and the doctor ask.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runTool } from '../../../appliance/machine/run-tool.ts'

const signal = new AbortController().signal

test('the output of a program is what it printed, whatever its exit status, in English and without input', async () => {
  const args = ['-c', 'cat; echo "$LC_ALL"; exit 3']
  assert.equal(await runTool('sh', { args, signal }), 'C\n')
})

test('a program that is not installed has none', async () => {
  assert.equal(await runTool('capfleet-no-such-tool', { args: [], signal }), undefined)
})

test('nor has one that was stopped', async () => {
  const args = ['-c', 'exec sleep 1000']
  assert.equal(await runTool('sh', { args, signal: AbortSignal.abort() }), undefined)
})
