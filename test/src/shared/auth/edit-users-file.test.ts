import assert from 'node:assert/strict'
import { chmod, chown, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { changePassword, putUser, removeUser } from '../../../../src/shared/auth/edit-users-file.ts'
import type { UsersFile } from '../../../../src/shared/auth/users-file.ts'
import { SCOPES_OF_ROLE } from '../../../../src/shared/base/scopes.ts'
import { loadUsers } from '../../../support/access/loaded-users.ts'

function verify(users: UsersFile, name: string, password: string) {
  return users.verify(`Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`, '192.0.2.1')
}

async function usersPath(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'capfleet-'))
  t.after(() => rm(folder, { recursive: true }))
  return join(folder, 'users.yaml')
}

test('the file holds no password and is readable by its owner only', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'user' }, 'hunter2')
  assert.ok(!(await readFile(path, 'utf8')).includes('hunter2'))
  assert.equal((await stat(path)).mode & 0o777, 0o600)
})

test('adding a user again replaces it and keeps comments and other users', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'user' }, 'one')
  await putUser(path, { name: 'bob', role: 'viewer' }, 'two')
  await writeFile(path, `# the SOC\n${await readFile(path, 'utf8')}`)
  assert.equal(await putUser(path, { name: 'ann', role: 'full' }, 'three'), 'replaced')
  const users = await loadUsers(path)
  assert.equal(await verify(users, 'ann', 'one'), undefined)
  assert.equal((await verify(users, 'ann', 'three'))?.scopes, SCOPES_OF_ROLE.full)
  assert.equal((await verify(users, 'bob', 'two'))?.scopes, SCOPES_OF_ROLE.viewer)
  assert.match(await readFile(path, 'utf8'), /^# the SOC/)
})

test('a name that HTTP Basic cannot carry and an empty password are refused', async (t) => {
  const path = await usersPath(t)
  await assert.rejects(putUser(path, { name: 'a:b', role: 'user' }, 'x'), /without spaces and colons/)
  await assert.rejects(putUser(path, { name: 'ab', role: 'user' }, ''), /must not be empty/)
})

test('a new password leaves the role, comments and other users', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'one')
  await putUser(path, { name: 'bob', role: 'viewer' }, 'two')
  const text = (await readFile(path, 'utf8')).replace('role: full', 'role: full # until June')
  await writeFile(path, text)
  await changePassword(path, 'ann', 'three')
  const users = await loadUsers(path)
  assert.equal(await verify(users, 'ann', 'one'), undefined)
  assert.equal((await verify(users, 'ann', 'three'))?.scopes, SCOPES_OF_ROLE.full)
  assert.equal((await verify(users, 'bob', 'two'))?.scopes, SCOPES_OF_ROLE.viewer)
  assert.match(await readFile(path, 'utf8'), /role: full # until June/)
  await assert.rejects(changePassword(path, 'carl', 'three'), /has no user carl/)
})

test('a user is removed alone, and never the last one', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'one')
  await putUser(path, { name: 'bob', role: 'viewer' }, 'two')
  await removeUser(path, 'ann')
  const users = await loadUsers(path)
  assert.equal(await verify(users, 'ann', 'one'), undefined)
  assert.equal((await verify(users, 'bob', 'two'))?.scopes, SCOPES_OF_ROLE.viewer)
  await assert.rejects(removeUser(path, 'ann'), /has no user ann/)
  await assert.rejects(removeUser(path, 'bob'), /the only user of .*; add another one first/)
})

test('a file that root changes still belongs to whom it belonged', {
  skip: process.getuid?.() === 0 ? false : 'needs root, to give a file to another user',
}, async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'one')
  await chown(path, 1234, 1235)
  await chmod(path, 0o640)
  await changePassword(path, 'ann', 'two')
  const { uid, gid, mode } = await stat(path)
  assert.deepEqual([uid, gid, mode & 0o777], [1234, 1235, 0o640])
})

test('users who could read a file by its group can still read it after a change, and no one else can', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'one')
  await chmod(path, 0o664)
  await putUser(path, { name: 'bob', role: 'viewer' }, 'two')
  assert.equal((await stat(path)).mode & 0o777, 0o640)
  await chmod(path, 0o600)
  await removeUser(path, 'bob')
  assert.equal((await stat(path)).mode & 0o777, 0o600)
})
