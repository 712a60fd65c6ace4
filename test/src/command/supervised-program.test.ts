// A recorder, for real: killed, started again, stopped.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { startChildProgram } from '../../../src/command/child-program.ts'
import { SupervisedProgram } from '../../../src/command/supervised-program.ts'
import { eventually } from '../../support/eventually.ts'
import { tempFolder } from '../../support/temp-folder.ts'

test('a recorder that is killed is back with its capture; one that is stopped stays away', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const configPath = join(folder.path, 'appliance.yaml')
  await writeFile(configPath, `store: ${store}\nauth: { users: ./users.yaml }\n`)
  const ended: number[] = []
  const client = new RecorderClient(store)
  const program = await SupervisedProgram.start({
    start: (appends) =>
      startChildProgram('recorder', ['recorder', '--config', configPath], {
        logPath: join(folder.path, 'log'),
        appends,
      }),
    onRestart: ({ pid }) => void ended.push(pid),
    stopGraceMs: 5_000,
  })
  const first = program.pid
  const { name } = await client.startCapture('kept')
  process.kill(first, 'SIGKILL')
  const isBack = async (): Promise<boolean> => {
    const report = await client.captureReport().catch(() => undefined)
    return program.pid !== first && report?.state === 'running' && report.name === name
  }
  await eventually(isBack, { limitMs: 15_000, message: 'the recorder is back' })
  assert.deepEqual(ended, [first])
  await program[Symbol.asyncDispose]()
  assert.throws(() => process.kill(program.pid, 0), { code: 'ESRCH' })
  assert.equal(ended.length, 1)
})
