import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { putUser, UsersFile } from '../../../src/base/users-file.ts'

/** The value of the Authorization header. */
function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`
}

async function usersPath(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'capfleet-'))
  t.after(() => rm(folder, { recursive: true }))
  return join(folder, 'users.yaml')
}

test('a user that was added is verified with the right password only', async (t) => {
  const path = await usersPath(t)
  assert.equal(await putUser(path, { name: 'ann', role: 'full' }, 'pässword'), 'added')
  const users = await UsersFile.load(path)
  assert.deepEqual(await users.verify(basic('ann', 'pässword')), { name: 'ann', role: 'full' })
  assert.deepEqual(
    await users.verify(basic('ann', 'pässword')),
    { name: 'ann', role: 'full' },
    'from the cache too',
  )
  assert.equal(await users.verify(basic('ann', 'wrong')), undefined)
  assert.equal(await users.verify(basic('bob', 'pässword')), undefined)
  assert.equal(await users.verify(basic('ann', '')), undefined)
  for (const other of ['', 'Basic', 'Basic !', 'Bearer YW5uOng=', `x${basic('ann', 'pässword')}`])
    assert.equal(await users.verify(other), undefined, other)
})

test('callers who come with the same credentials at once share one hash', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'right')
  const users = await UsersFile.load(path)
  for (const [password, role] of [
    ['wrong', undefined],
    ['right', 'full'],
  ] as const) {
    const first = users.verify(basic('ann', password))
    assert.equal(users.verify(basic('ann', password)), first)
    assert.notEqual(users.verify(basic('ann', `${password}er`)), first)
    assert.equal((await first)?.role, role)
  }
  assert.notEqual(users.verify(basic('ann', 'wrong')), users.verify(basic('ann', 'right')))
  const again = users.verify(basic('ann', 'wrong'))
  assert.equal(await again, undefined)
  assert.notEqual(users.verify(basic('ann', 'wrong')), again, 'what was wrong is hashed again')
})

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
  const users = await UsersFile.load(path)
  assert.equal(await users.verify(basic('ann', 'one')), undefined)
  assert.equal((await users.verify(basic('ann', 'three')))?.role, 'full')
  assert.equal((await users.verify(basic('bob', 'two')))?.role, 'viewer')
  assert.match(await readFile(path, 'utf8'), /^# the SOC/)
})

test('a file without a user, with a plain password or with an unknown role is refused', async (t) => {
  const path = await usersPath(t)
  await assert.rejects(UsersFile.load(path), /cannot read the configuration/)
  await writeFile(path, 'users: []')
  await assert.rejects(UsersFile.load(path), /must name a user/)
  await writeFile(path, 'users: [{name: a, role: full, password: plain}]')
  await assert.rejects(UsersFile.load(path), /users\[0\]\.password: must be an argon2id hash/)
  await writeFile(path, 'users: [{name: a, role: root, password: plain}]')
  await assert.rejects(UsersFile.load(path), /users\[0\]\.role/)
})

test('a name that HTTP Basic cannot carry and an empty password are refused', async (t) => {
  const path = await usersPath(t)
  await assert.rejects(putUser(path, { name: 'a:b', role: 'user' }, 'x'), /without spaces and colons/)
  await assert.rejects(putUser(path, { name: 'ab', role: 'user' }, ''), /must not be empty/)
})
