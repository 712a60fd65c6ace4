import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { startChildProgram } from '../../../src/demo/child-program.ts'
import { tempFolder } from '../../support/temp-folder.ts'

test('a program that does not start is reported with its own reason', async () => {
  await using folder = await tempFolder()
  const logPath = join(folder.path, 'log', 'gateway.log')
  const args = ['gateway', '--config', join(folder.path, 'missing.yaml')]
  await assert.rejects(startChildProgram('gateway', args, { logPath, appends: false }), (error: Error) => {
    assert.match(
      error.message,
      /^gateway did not start: cannot read the configuration \S+missing\.yaml: ENOENT.*\[bad-config\]; its log is \S+gateway\.log$/,
    )
    return true
  })
})
