import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, describe, mock, test } from 'node:test'
import jwt from 'jsonwebtoken'
import type { OpenSession, SessionCaller } from '../../../../src/gateway/auth/sessions.ts'
import { putUser, removeUser } from '../../../../src/shared/auth/edit-users-file.ts'
import { type Caller, UNBOUNDED } from '../../../../src/shared/base/caller.ts'
import { openTempTokens, type TempTokens } from '../../../support/access/temp-tokens.ts'
import { USER_PASSWORD } from '../../../support/suite-secrets.ts'

const MINUTE_MS = 60_000

describe('sessions', () => {
  let tokens: TempTokens
  before(async () => {
    tokens = await openTempTokens(async (folder) => {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
      await writeFile(join(folder, 'one.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
    })
  })
  after(() => tokens[Symbol.asyncDispose]())
  afterEach(() => mock.timers.reset())

  const ann = (): Caller => tokens.users.now('ann') as Caller
  const callerOf = async ({ token }: OpenSession) =>
    (await tokens.verifier.verify(token, 'session')) as SessionCaller
  const isOver = (session: OpenSession) =>
    assert.rejects(callerOf(session), { code: 'unauthenticated', details: { tokenFlaw: 'expired' } })

  test('end when they are idle, and at the latest after their lifetime', async () => {
    mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const { sessions } = tokens.handling
    let session = await sessions.begin(ann(), '/')
    mock.timers.tick(29 * MINUTE_MS)
    const renewed = sessions.renew(await callerOf(session))
    mock.timers.tick(2 * MINUTE_MS)
    await isOver(session)
    session = renewed
    for (let passedMin = 31; passedMin < 12 * 60 - 10; passedMin += 10) {
      mock.timers.tick(10 * MINUTE_MS)
      session = sessions.renew(await callerOf(session))
    }
    mock.timers.tick(21 * MINUTE_MS)
    await isOver(session)
  })

  test('of a password have what the users file says when they ask', async () => {
    const session = await tokens.handling.sessions.begin(ann(), '/')
    const { bounds } = jwt.decode(session.token) as { bounds: unknown }
    assert.deepEqual(bounds, UNBOUNDED)
    assert.deepEqual((await callerOf(session)).scopes, ann().scopes)
  })

  test('of a password end with it, cut what runs by them, and take their tickets along', async () => {
    const session = await tokens.handling.sessions.begin(ann(), '/')
    const caller = await callerOf(session)
    const { ticket } = await tokens.tickets.issue(caller, '/x', 60)
    const made = await tokens.handling.own.issue(caller, {
      lifetimeS: undefined,
      scopes: undefined,
      bounds: {},
      note: undefined,
    })
    const withPassword = ann()
    await putUser(tokens.usersPath, { name: 'admin', role: 'full' }, USER_PASSWORD)
    await tokens.users.reload()
    assert.equal(caller.revoked.aborted, false, 'of another user')
    await putUser(tokens.usersPath, { name: 'ann', role: 'full' }, 'another password')
    await tokens.users.reload()
    assert.equal(caller.revoked.aborted, true)
    assert.equal(withPassword.revoked.aborted, false, 'what came with the password itself goes on')
    await assert.rejects(callerOf(session), {
      code: 'unauthenticated',
      message: /was started with a password/,
    })
    await assert.rejects(tokens.tickets.redeem(ticket, '/x', false), { code: 'unauthenticated' })
    assert.equal((await tokens.verifier.verify(made.token)).name, 'ann', 'tokens are revoked by themselves')
    await callerOf(await tokens.handling.sessions.begin(ann(), '/'))
  })

  test('end with their user', async () => {
    const session = await tokens.handling.sessions.begin(tokens.users.now('admin') as Caller, '/')
    const caller = await callerOf(session)
    await removeUser(tokens.usersPath, 'admin')
    await tokens.users.reload()
    assert.equal(caller.revoked.aborted, true)
    await assert.rejects(callerOf(session), { code: 'unauthenticated' })
  })

  test('are refused to users with bounds that no browser would keep', async () => {
    const credential = { kind: 'token', id: 'x', chain: [], expiresMs: Date.now() + MINUTE_MS } as const
    const bounds = { ...UNBOUNDED, filters: [`host ${'1'.repeat(4_000)}`] }
    const begun = tokens.handling.sessions.begin({ ...ann(), credential, bounds }, '/')
    await assert.rejects(begun, { code: 'out-of-bounds' })
  })

  test('are not started by anything but a user', async () => {
    const credential = { kind: 'ticket', id: 'x' } as const
    const begun = tokens.handling.sessions.begin({ ...ann(), credential }, '/')
    await assert.rejects(begun, { code: 'unauthenticated' })
  })
})

test('a gateway whose own clock jumps ends no session early, and forgets no revocation', async () => {
  const nowMs = Date.now()
  let passedMs = 0
  const fill = async (folder: string) => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
    await writeFile(join(folder, 'one.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
  }
  const clock = { nowMs: () => nowMs + passedMs, distrust: undefined }
  await using tokens = await openTempTokens(fill, {}, clock)
  const ann = tokens.users.now('ann') as Caller
  const wanted = { lifetimeS: 600, scopes: undefined, bounds: {}, note: undefined }
  const { own, sessions, revocations } = tokens.handling
  const before = await own.issue(ann, wanted)
  const revoked = await own.issue(ann, wanted)
  revocations.add(revoked.issued)
  const years = 10 * 365 * 86_400_000
  for (const jumpMs of [3_600_000, 172_800_000, years, -3_600_000, -172_800_000, -years]) {
    mock.timers.enable({ apis: ['Date'], now: nowMs + jumpMs })
    const session = await sessions.begin(ann, '/')
    const meanwhile = await own.issue(ann, wanted)
    assert.equal(meanwhile.issued.expiresMs - Math.floor(nowMs / 1_000) * 1_000, 600_000)
    for (const isBack of [false, true]) {
      if (isBack) mock.timers.reset()
      await tokens.verifier.verify(before.token)
      await tokens.verifier.verify(meanwhile.token)
      await tokens.verifier.verify(session.token, 'session')
      await assert.rejects(tokens.verifier.verify(revoked.token), { details: { tokenFlaw: 'revoked' } })
    }
  }
  passedMs = 700_000
  await assert.rejects(tokens.verifier.verify(before.token), { details: { tokenFlaw: 'expired' } })
})
