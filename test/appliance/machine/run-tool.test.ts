// Programs of the system that sensors ask.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runTool } from '../../../appliance/machine/run-tool.ts'

const { signal } = new AbortController()

test('a tool says what it says, whatever its status, in English and without input', async () => {
  const script = 'cat; echo "$LC_ALL"; exit 3'
  assert.equal(await runTool('sh', { args: ['-c', script], signal }), 'C\n')
})

test('one that is not installed says nothing', async () => {
  assert.equal(await runTool('no-such-tool', { args: [], signal }), undefined)
})

test('one that hangs says nothing once it is stopped', async () => {
  const stop = new AbortController()
  const said = runTool('sh', { args: ['-c', 'exec sleep 1000'], signal: stop.signal })
  stop.abort()
  assert.equal(await said, undefined)
})
