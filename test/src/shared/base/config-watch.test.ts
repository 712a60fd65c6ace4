import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { ConfigWatch } from '../../../../src/shared/base/config-watch.ts'
import type { Log } from '../../../../src/shared/base/log.ts'
import { eventually } from '../../../support/eventually.ts'
import { type TempFolder, tempFolder } from '../../../support/temp-folder.ts'

async function watchIn(folder: TempFolder, others: readonly string[] = []) {
  const path = join(folder.path, 'gateway.yaml')
  const state = { reloads: 0, failure: undefined as Error | undefined }
  const logged: string[] = []
  const record = (event: string, fields?: Readonly<Record<string, unknown>>) =>
    void logged.push(`${event} ${fields?.cause} ${fields?.message ?? ''}`.trim())
  const log: Log = { debug: record, info: record, warn: record, error: record }
  const reload = async () => {
    state.reloads += 1
    if (state.failure !== undefined) throw state.failure
  }
  const watch = await ConfigWatch.start({ paths: [path, ...others], reload, log })
  const until = (reloads: number) =>
    eventually(() => state.reloads === reloads, { message: `${reloads} reloads, ${logged}` })
  return { path, state, logged, until, [Symbol.asyncDispose]: () => watch.close() }
}

test('reloads after a write and after a new file took the place, once each, not for other files', async () => {
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'gateway.yaml'), 'a')
  await using watched = await watchIn(folder)
  await writeFile(join(folder.path, 'other.yaml'), 'x')
  // Without a pause between them, in which the watch would have read the first.
  writeFileSync(watched.path, 'b')
  writeFileSync(watched.path, 'c')
  await watched.until(1)
  await writeFile(`${watched.path}.new`, 'd')
  await rename(`${watched.path}.new`, watched.path)
  await watched.until(2)
  await eventually(() => watched.logged.length === 2, { message: 'both are logged' })
  assert.deepEqual(watched.logged, ['config.reloaded file', 'config.reloaded file'])
})

test('reloads in time although another file of the folder is written all the time', async () => {
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'gateway.yaml'), 'a')
  await using watched = await watchIn(folder)
  writeFileSync(watched.path, 'b')
  // More frequently than the watch waits for an editor's last step.
  const writing = setInterval(() => writeFileSync(join(folder.path, 'other.log'), 'x'), 50)
  try {
    await watched.until(1)
  } finally {
    clearInterval(writing)
  }
})

test('sees a mount that swaps a link to a folder, as Kubernetes does', async () => {
  await using folder = await tempFolder()
  for (const version of ['v1', 'v2']) await writeFile(join(folder.path, version), version)
  await symlink('v1', join(folder.path, '..data'))
  await symlink('..data', join(folder.path, 'gateway.yaml'))
  await using watched = await watchIn(folder)
  await symlink('v2', join(folder.path, '..new'))
  await rename(join(folder.path, '..new'), join(folder.path, '..data'))
  await watched.until(1)
})

test('files that are read together are read once when all of them change, wherever they are', async () => {
  await using folder = await tempFolder()
  await using elsewhere = await tempFolder()
  const key = join(elsewhere.path, 'key.pem')
  for (const path of [join(folder.path, 'gateway.yaml'), key]) await writeFile(path, 'a')
  await using watched = await watchIn(folder, [key])
  writeFileSync(watched.path, 'b')
  writeFileSync(key, 'b')
  await watched.until(1)
  writeFileSync(key, 'c')
  await watched.until(2)
})

test('sees files come, change and go in a folder', async () => {
  await using folder = await tempFolder()
  await mkdir(join(folder.path, 'gateway.yaml'))
  await using watched = await watchIn(folder)
  const file = join(watched.path, 'a.pem')
  writeFileSync(file, 'a')
  await watched.until(1)
  writeFileSync(file, 'other')
  await watched.until(2)
  await rm(file)
  await watched.until(3)
})

test('SIGHUP reloads an unchanged file too; a refused one is logged and the watch continues', async () => {
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'gateway.yaml'), 'a')
  await using watched = await watchIn(folder)
  watched.state.failure = new Error('devices[0].url: must be (line 3, column 10)')
  process.kill(process.pid, 'SIGHUP')
  await watched.until(1)
  await eventually(() => watched.logged.length === 1, { message: 'it is logged' })
  assert.deepEqual(watched.logged, [
    'config.reload-refused SIGHUP devices[0].url: must be (line 3, column 10)',
  ])
  watched.state.failure = undefined
  process.kill(process.pid, 'SIGHUP')
  await watched.until(2)
})

test('after close neither the file nor SIGHUP is heeded', async () => {
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'gateway.yaml'), 'a')
  const before = process.listenerCount('SIGHUP')
  {
    await using watched = await watchIn(folder)
    assert.equal(process.listenerCount('SIGHUP'), before + 1)
    await watched.until(0)
  }
  assert.equal(process.listenerCount('SIGHUP'), before)
})
