import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parseDocument } from 'yaml'
import { putUser, removeUser } from '../../../../src/shared/auth/edit-users-file.ts'
import { LoginGate } from '../../../../src/shared/auth/login-gate.ts'
import { findUser, UsersFile } from '../../../../src/shared/auth/users-file.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { type Role, SCOPES_OF_ROLE } from '../../../../src/shared/base/scopes.ts'
import { loadUsers } from '../../../support/access/loaded-users.ts'
import { pause } from '../../../support/pause.ts'

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
  assert.deepEqual([ann?.name, ann?.scopes], ['ann', SCOPES_OF_ROLE.full])
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
  assert.equal((await findUser(path, 'ann'))?.scopes, SCOPES_OF_ROLE.full)
  await putUser(path, { name: 'ann', role: 'viewer' }, 'right')
  assert.equal((await findUser(path, 'ann'))?.scopes, SCOPES_OF_ROLE.viewer)
  assert.equal(await findUser(path, 'bob'), undefined)
})

test('a user who is removed while the password is checked is not admitted', async (t) => {
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
  const users = await UsersFile.load(path, gate, { bounds: true })
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
    assert.equal((await first)?.scopes, role && SCOPES_OF_ROLE[role])
  }
  assert.notEqual(verify(users, basic('ann', 'wrong')), verify(users, basic('ann', 'right')))
  const again = verify(users, basic('ann', 'wrong'))
  assert.equal(await again, undefined)
  assert.notEqual(verify(users, basic('ann', 'wrong')), again, 'what was wrong is hashed again')
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
    assert.equal(after?.scopes, SCOPES_OF_ROLE[to])
    assert.equal(after.revoked.aborted, false)
  })
}

test('a user name that is added again for someone else cuts what runs for the earlier one', async (t) => {
  const path = await usersPath(t)
  const addAnn = (since: string) =>
    putUser(path, { name: 'ann', role: 'user', since: new Date(since) }, 'one')
  await addAnn('2026-11-27T09:00:00.700Z')
  await putUser(path, { name: 'bob', role: 'user' }, 'two')
  const users = await loadUsers(path)
  const before = await verify(users, basic('ann', 'one'))
  assert.equal(before?.sinceMs, Date.parse('2026-11-27T09:00:00Z'))
  assert.equal((await verify(users, basic('bob', 'two')))?.sinceMs, undefined)
  await addAnn('2026-11-27T10:00:00Z')
  await users.reload()
  assert.equal(before.revoked.aborted, false, 'one who is there keeps the name')
  await removeUser(path, 'ann')
  await addAnn('2026-11-27T10:00:00Z')
  await users.reload()
  assert.equal(before.revoked.aborted, true)
  const after = await verify(users, basic('ann', 'one'))
  assert.deepEqual([after?.sinceMs, after?.revoked.aborted], [Date.parse('2026-11-27T10:00:00Z'), false])
})

test('a user may have bounds, which stay when the password changes, and cut what runs when they change', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'user' }, 'one')
  const bound = async (filter: string) => {
    const document = parseDocument(await readFile(path, 'utf8'))
    document.setIn(['users', 0, 'filter'], filter)
    document.setIn(['users', 0, 'streamsMax'], 2)
    await writeFile(path, String(document))
  }
  await bound('port 53')
  const users = await loadUsers(path)
  const bounds = {
    devices: [],
    filters: ['port 53'],
    spanMaxS: undefined,
    quotas: [{ holder: 'ann', bytesPerDay: undefined, streamsMax: 2 }],
  }
  const before = await verify(users, basic('ann', 'one'))
  assert.deepEqual(before?.bounds, bounds)
  await putUser(path, { name: 'ann', role: 'user' }, 'two')
  await users.reload()
  assert.deepEqual((await verify(users, basic('ann', 'two')))?.bounds, bounds)
  assert.equal(before?.revoked.aborted, false)
  await bound('port 80')
  await users.reload()
  assert.equal(before?.revoked.aborted, true)
  await bound('port 53) or (port 80')
  await assert.rejects(users.reload(), /users\[0\]\.filter/)
  await bound('port 80')
  const gate = new LoginGate({ waitingMax: 10, wrongMax: 10, pauseMaxS: 60 }, new Metrics())
  await assert.rejects(UsersFile.load(path, gate, { bounds: false }), /only a gateway supports/)
})

test('credentials that are sent constantly are checked again after a minute', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'right')
  let looks = 0
  const gate = {
    verify: (_caller: unknown, look: () => Promise<boolean>) => {
      looks += 1
      return look()
    },
  } as unknown as LoginGate
  const users = await UsersFile.load(path, gate, { bounds: true })
  let nowMs = 1_000
  t.mock.method(performance, 'now', () => nowMs)
  for (let elapsedS = 0; elapsedS < 180; elapsedS += 10) {
    nowMs += 10_000
    // The cache reads the clock once per millisecond of real time.
    await pause(2, 'the cache reads the real clock once per millisecond')
    assert.equal((await verify(users, basic('ann', 'right')))?.name, 'ann')
  }
  assert.equal(looks, 3)
})

test('a users file that is malformed changes nothing', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'one')
  const users = await loadUsers(path)
  await writeFile(path, 'users: [')
  await assert.rejects(users.reload(), { code: 'bad-config' })
  assert.equal((await verify(users, basic('ann', 'one')))?.scopes, SCOPES_OF_ROLE.full)
})

test('a user who is listed twice is refused: one of the two entries would lose its bounds', async (t) => {
  const path = await usersPath(t)
  await putUser(path, { name: 'ann', role: 'full' }, 'one')
  const text = await readFile(path, 'utf8')
  await writeFile(path, `${text}${text.slice(text.indexOf('\n') + 1)}`)
  await assert.rejects(loadUsers(path), { code: 'bad-config', message: /names ann again/ })
})
