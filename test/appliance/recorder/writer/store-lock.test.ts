import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { lockStore } from '../../../../appliance/recorder/writer/store-lock.ts'
import { storePaths } from '../../../../appliance/store/store-paths.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const MODULE = fileURLToPath(new URL('../../../../appliance/recorder/writer/store-lock.ts', import.meta.url))

test('a store has one writer, in this process and in others', async () => {
  await using folder = await tempFolder()
  const paths = storePaths(folder.path)
  using lock = await lockStore(paths)
  await assert.rejects(lockStore(paths), {
    code: 'store-unavailable',
    message: new RegExp(`process ${process.pid}\\)`),
  })
  lock[Symbol.dispose]()
  using _again = await lockStore(paths)
})

test('a killed writer leaves no lock', async () => {
  await using folder = await tempFolder()
  const paths = storePaths(folder.path)
  const script = `
    const { lockStore } = await import(${JSON.stringify(MODULE)})
    globalThis.lock = await lockStore(${JSON.stringify(paths)})
    console.log('locked')
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      assert.equal(line, 'locked')
      break
    }
    await assert.rejects(lockStore(paths), { message: new RegExp(`process ${child.pid}\\)`) })
  } finally {
    child.kill('SIGKILL')
    await exited
  }
  using _lock = await lockStore(paths)
})
