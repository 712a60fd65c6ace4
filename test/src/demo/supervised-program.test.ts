// A real recorder: killed, restarted, stopped.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { startChildProgram } from '../../../src/demo/child-program.ts'
import { SupervisedProgram, type SupervisedProgramOptions } from '../../../src/demo/supervised-program.ts'
import { eventually } from '../../support/eventually.ts'
import { tempFolder } from '../../support/temp-folder.ts'

/** How to start a recorder whose configuration and store are in `folder`. */
async function recorderStart(folder: string): Promise<SupervisedProgramOptions['start']> {
  const configPath = join(folder, 'appliance.yaml')
  await writeFile(configPath, `store: ${join(folder, 'store')}\nauth: { users: ./users.yaml }\n`)
  return (appends) =>
    startChildProgram('recorder', ['recorder', '--config', configPath], {
      logPath: join(folder, 'log'),
      appends,
    })
}

test('a recorder that is killed is restarted with its capture; one that is stopped stays stopped', async () => {
  await using folder = await tempFolder()
  const ended: number[] = []
  const client = new RecorderClient(join(folder.path, 'store'))
  const program = await SupervisedProgram.start({
    start: await recorderStart(folder.path),
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
  await eventually(isBack, { message: 'the recorder is back' })
  assert.deepEqual(ended, [first])
  await program[Symbol.asyncDispose]()
  assert.throws(() => process.kill(program.pid, 0), { code: 'ESRCH' })
  assert.equal(ended.length, 1)
})

test('one that is stopped while it is started again ends too', async () => {
  await using folder = await tempFolder()
  const start = await recorderStart(folder.path)
  const stopping = Promise.withResolvers<void>()
  const pids: number[] = []
  const program: SupervisedProgram = await SupervisedProgram.start({
    start: async (isRestart) => {
      const started = await start(isRestart)
      pids.push(started.pid)
      if (isRestart) stopping.resolve(program[Symbol.asyncDispose]())
      return started
    },
    onRestart: () => undefined,
    stopGraceMs: 5_000,
  })
  process.kill(program.pid, 'SIGKILL')
  await stopping.promise
  assert.equal(pids.length, 2)
  for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
})
