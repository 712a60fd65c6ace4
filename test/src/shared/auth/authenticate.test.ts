import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { authenticate, recognize, refuseWithout } from '../../../../src/shared/auth/authenticate.ts'
import { putUser } from '../../../../src/shared/auth/edit-users-file.ts'
import type { UsersFile } from '../../../../src/shared/auth/users-file.ts'
import { UNBOUNDED } from '../../../../src/shared/base/caller.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import type { Scope } from '../../../../src/shared/base/scopes.ts'
import type { RequestState } from '../../../../src/shared/http/http-app.ts'
import { ServerTiming } from '../../../../src/shared/http/server-timing.ts'
import { loadUsers } from '../../../support/access/loaded-users.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const ANN = `Basic ${btoa('ann:open sesame')}`
const owned = new AsyncDisposableStack()
let users: UsersFile

before(async () => {
  const path = join(owned.use(await tempFolder()).path, 'users.yaml')
  await putUser(path, { name: 'ann', role: 'user' }, 'open sesame')
  users = await loadUsers(path)
})
after(() => owned.disposeAsync())

function requestOf(headers: { readonly authorization: string | undefined }): IncomingMessage {
  const request = new IncomingMessage(new Socket())
  Object.assign(request.headers, headers)
  return request
}

function stateOf(req: IncomingMessage): RequestState {
  return { requestId: 'x', address: '192.0.2.7', timing: new ServerTiming(new ServerResponse(req)) }
}

async function attempt(authorization: string | undefined, needed: Scope) {
  const req = requestOf({ authorization })
  const state = stateOf(req)
  const error = await authenticate({ req, state }, needed, { users }).catch((thrown: unknown) => thrown)
  if (error !== undefined) assert.ok(error instanceof CapfleetError, String(error))
  return { user: state.caller?.name, error }
}

test('a user is admitted to what their role allows, and known', async () => {
  for (const needed of ['device:read', 'capture:download'] as const)
    assert.deepEqual(await attempt(ANN, needed), { user: 'ann', error: undefined })
})

test('a user without the scope is identified too, and the error names the scope', async () => {
  const { user, error } = await attempt(ANN, 'capture:delete')
  assert.deepEqual([user, error?.code], ['ann', 'insufficient-scope'])
  const scopes = ['device:read', 'queue:read', 'capture:download', 'export:create', 'export:read']
  assert.deepEqual(error?.details.members, { scopes, needed: 'capture:delete' })
  assert.match(
    error?.message ?? '',
    /ann may not do this: it requires the scope capture:delete, which the role full has/,
  )
})

for (const [authorization, message] of [
  [undefined, /requires a login; send HTTP Basic credentials/],
  ['', /is not HTTP Basic/],
  ['Bearer x', /is not HTTP Basic/],
  [`Basic ${btoa('ann:wrong')}`, /the user name or the password is wrong/],
  [`Basic ${btoa('bob:open sesame')}`, /the user name or the password is wrong/],
] as const) {
  test(`no one is admitted by ${JSON.stringify(authorization)}`, async () => {
    const { user, error } = await attempt(authorization, 'device:read')
    assert.deepEqual([user, error?.code], [undefined, 'unauthenticated'])
    assert.match(error?.message ?? '', message)
  })
}

test('on an open path valid credentials identify a caller, and wrong ones leave them anonymous', async () => {
  for (const [authorization, user] of [
    [ANN, 'ann'],
    [`Basic ${btoa('ann:wrong')}`, undefined],
    [undefined, undefined],
  ] as const) {
    const req = requestOf({ authorization })
    const state = stateOf(req)
    await recognize({ req, state }, { users })
    assert.equal(state.caller?.name, user, String(authorization))
  }
})

test('a token without the scope is told that the token lacks it, whatever the role of its user', () => {
  const token = { kind: 'token', id: 'a', chain: ['a'], expiresMs: 0 } as const
  const session = {
    kind: 'session',
    id: 's',
    origin: token,
    chain: [],
    beganMs: 0,
    expiresMs: 0,
    endsMs: 0,
    formToken: '',
    path: '/',
  } as const
  for (const [credential, message] of [
    [
      token,
      /^this token of ann may not do this: it lacks the scope capture:delete; use a token that has it$/,
    ],
    [session, /^this token of ann /],
    [
      { ...token, chain: [] },
      /^ann may not do this: it requires the scope capture:delete, which the role full has$/,
    ],
  ] as const) {
    const caller = {
      name: 'ann',
      scopes: new Set<Scope>(),
      bounds: UNBOUNDED,
      credential,
      revoked: new AbortController().signal,
    }
    assert.throws(() => refuseWithout('capture:delete', caller), { code: 'insufficient-scope', message })
  }
})
