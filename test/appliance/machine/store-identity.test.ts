import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { storeIdentity } from '../../../appliance/machine/store-identity.ts'
import { tempFolder } from '../../support/temp-folder.ts'

test('two folders have different identities, and one keeps its own', async () => {
  await using folder = await tempFolder()
  const [one, other] = [join(folder.path, 'one'), join(folder.path, 'other')]
  await Promise.all([mkdir(one), mkdir(other)])
  const identity = await storeIdentity(one)
  await writeFile(join(one, 'store.json'), '{}')
  assert.equal(await storeIdentity(one), identity)
  if (identity !== '') assert.notEqual(await storeIdentity(other), identity)
})

test('a folder that is missing is reported with what to do', async () => {
  await assert.rejects(storeIdentity('/nonexistent/store'), {
    code: 'store-unavailable',
    message:
      'there is no store at /nonexistent/store; start the recorder, which creates it, or correct "store"',
  })
  await assert.rejects(storeIdentity('/dev/null/store'), { code: 'store-unavailable' })
})
