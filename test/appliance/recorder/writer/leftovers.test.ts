import assert from 'node:assert/strict'
import { access, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Leftovers, removeTree } from '../../../../appliance/recorder/writer/leftovers.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

async function makeTree(path: string, files: number): Promise<void> {
  await mkdir(join(path, 'inside'), { recursive: true })
  for (let i = 0; i < files; i++) await writeFile(join(path, 'inside', String(i)), '')
}

test('files and folders are removed with everything in them', async () => {
  await using folder = await tempFolder()
  const [tree, file] = [join(folder.path, 'tree'), join(folder.path, 'file')]
  await makeTree(tree, 20)
  await writeFile(file, '')
  await using leftovers = new Leftovers([tree, file, join(folder.path, 'never there')])
  await Promise.all([leftovers.remove(), leftovers.remove()])
  assert.deepEqual(await readdir(folder.path), [])
})

test('one whose name is wanted is removed first', async () => {
  await using folder = await tempFolder()
  const [first, second] = [join(folder.path, '1'), join(folder.path, '2')]
  await makeTree(first, 1)
  await makeTree(second, 1)
  await using leftovers = new Leftovers([first, second])
  await leftovers.removeFirst(second)
  await leftovers.removeFirst(join(folder.path, 'not one of them'))
  assert.deepEqual(await readdir(folder.path), ['1'])
})

test('dispose ends the removal between two files, and is no failure', async () => {
  await using folder = await tempFolder()
  const tree = join(folder.path, 'tree')
  await makeTree(tree, 2_000)
  const leftovers = new Leftovers([tree])
  const removing = leftovers.remove()
  await leftovers[Symbol.asyncDispose]()
  await removing
  await access(tree)
})

test('a removal that is not to begin removes nothing', async () => {
  await using folder = await tempFolder()
  const reason = new Error('the recorder is shutting down')
  await makeTree(join(folder.path, 'tree'), 1)
  await assert.rejects(removeTree(join(folder.path, 'tree'), AbortSignal.abort(reason)), reason)
  assert.deepEqual(await readdir(join(folder.path, 'tree', 'inside')), ['0'])
})
