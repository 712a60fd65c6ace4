import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { LoginGate } from '../../../src/auth/login-gate.ts'
import { findUser, putUser, UsersFile } from '../../../src/auth/users-file.ts'
import type { Role } from '../../../src/base/role.ts'
import { loadUsers } from '../../support/loaded-users.ts'

const ADDRESS = '192.0.2.1'

function verify(users: UsersFile, authorization: string) {
  return users.verify(authorization, ADDRESS)
}

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
  const users = await loadUsers(path)
  const ann = await verify(users, basic('ann', 'pässword'))
  assert.deepEqual([ann?.name, ann?.role], ['ann', 'full'])
  assert.equal(await verify(users, basic('ann', 'pässword')), ann, 'from the cache too')
  assert.equal(await verify(users, basic('ann', 'wrong')), undefined)
  assert.equal(await verify(users, basic('bob', 'pässword')), undefined)
  assert.equal(await verify(users, basic('ann', '')), undefined)
  for (const other of ['', 'Basic', 'Basic !', 'Bearer YW5uOng=', `x${basic('ann', 'pässword')}`])
    assert.equal(await verify(users, other), undefined, other)
})

test('a user is found by name, with the role that the file says now', async (t) => {
  const path = await usersPath(t)
  await assert.rejects(findUser(path, 'ann'), { code: 'bad-config' })
  await putUser(path, { name: 'ann', role: 'full' }, 'right')
  assert.deepEqual(await findUser(path, 'ann'), { name: 'ann', role: 'full' })
  await putUser(path, { name: 'ann', role: 'viewer' }, 'right')
  assert.deepEqual(await findUser(path, 'ann'), { name: 'ann', role: 'viewer' })
  assert.equal(await findUser(path, 'bob'), undefined)
})

test('a user who is removed while the password is looked at does not get in', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'right')
  await putUser(path, { name: 'bob', role: 'full' }, 'right')
  const [looked, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const gate = {
    verify: async (_caller: unknown, look: () => Promise<boolean>) => {
      const isRight = await look()
      looked.resolve()
      await goOn.promise
      return isRight
    },
  } as unknown as LoginGate
  const users = await UsersFile.load(path, gate)
  const [ann, bob] = [verify(users, basic('ann', 'right')), verify(users, basic('bob', 'right'))]
  await looked.promise
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace(/ {2}- name: ann\n(?: {4}.*\n)+/, ''))
  await users.reload()
  goOn.resolve()
  assert.equal(await ann, undefined)
  assert.equal((await bob)?.name, 'bob')
})

test('callers who come with the same credentials at once share one hash', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'right')
  const users = await loadUsers(path)
  for (const [password, role] of [
    ['wrong', undefined],
    ['right', 'full'],
  ] as const) {
    const first = verify(users, basic('ann', password))
    assert.equal(verify(users, basic('ann', password)), first)
    assert.notEqual(verify(users, basic('ann', `${password}er`)), first)
    assert.equal((await first)?.role, role)
  }
  assert.notEqual(verify(users, basic('ann', 'wrong')), verify(users, basic('ann', 'right')))
  const again = verify(users, basic('ann', 'wrong'))
  assert.equal(await again, undefined)
  assert.notEqual(verify(users, basic('ann', 'wrong')), again, 'what was wrong is hashed again')
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
  const users = await loadUsers(path)
  assert.equal(await verify(users, basic('ann', 'one')), undefined)
  assert.equal((await verify(users, basic('ann', 'three')))?.role, 'full')
  assert.equal((await verify(users, basic('bob', 'two')))?.role, 'viewer')
  assert.match(await readFile(path, 'utf8'), /^# the SOC/)
})

test('a file without a user, with a plain password or with an unknown role is refused', async (t) => {
  const path = await usersPath(t)
  await assert.rejects(loadUsers(path), /cannot read the configuration/)
  await writeFile(path, 'users: []')
  await assert.rejects(loadUsers(path), /must name a user/)
  await writeFile(path, 'users: [{name: a, role: full, password: plain}]')
  await assert.rejects(loadUsers(path), /users\[0\]\.password: must be an argon2id hash/)
  await writeFile(path, 'users: [{name: a, role: root, password: plain}]')
  await assert.rejects(loadUsers(path), /users\[0\]\.role/)
})

test('a name that HTTP Basic cannot carry and an empty password are refused', async (t) => {
  const path = await usersPath(t)
  await assert.rejects(putUser(path, { name: 'a:b', role: 'user' }, 'x'), /without spaces and colons/)
  await assert.rejects(putUser(path, { name: 'ab', role: 'user' }, ''), /must not be empty/)
})

test('after a reload a removed user is unknown, and what runs of theirs ends', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'one')
  await putUser(path, { name: 'bob', role: 'user' }, 'two')
  const users = await loadUsers(path)
  const ann = await verify(users, basic('ann', 'one'))
  const bob = await verify(users, basic('bob', 'two'))
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace(/ {2}- name: ann[\s\S]*?(?= {2}- name: bob)/, ''))
  await users.reload()
  assert.equal(await verify(users, basic('ann', 'one')), undefined)
  assert.equal(ann?.revoked.aborted, true)
  assert.match(String(ann?.revoked.reason), /the user ann has been removed/)
  assert.equal(await verify(users, basic('bob', 'two')), bob, 'needs no second look')
  assert.equal(bob?.revoked.aborted, false)
})

for (const [from, to, isRevoked] of [
  ['full', 'user', true],
  ['user', 'full', false],
  ['user', 'user', false],
] as const satisfies readonly (readonly [Role, Role, boolean])[]) {
  test(`a user who goes from ${from} to ${to} with another password ${isRevoked ? 'loses' : 'keeps'} what runs`, async (t) => {
    const path = await usersPath(t)
    await putUser(path, { name: 'ann', role: from }, 'one')
    const users = await loadUsers(path)
    const before = await verify(users, basic('ann', 'one'))
    await putUser(path, { name: 'ann', role: to }, 'two')
    await users.reload()
    assert.equal(before?.revoked.aborted, isRevoked)
    assert.equal(await verify(users, basic('ann', 'one')), undefined, 'the old password is no more')
    const after = await verify(users, basic('ann', 'two'))
    assert.equal(after?.role, to)
    assert.equal(after.revoked.aborted, false)
  })
}

test('a users file that is malformed changes nothing', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'one')
  const users = await loadUsers(path)
  await writeFile(path, 'users: [')
  await assert.rejects(users.reload(), { code: 'bad-config' })
  assert.equal((await verify(users, basic('ann', 'one')))?.role, 'full')
})
