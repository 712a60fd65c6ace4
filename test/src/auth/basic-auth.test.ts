import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { authenticate, recognize } from '../../../src/auth/basic-auth.ts'
import { putUser, type UsersFile } from '../../../src/auth/users-file.ts'
import { CapfleetError } from '../../../src/base/error.ts'
import type { Role } from '../../../src/base/role.ts'
import type { RequestState } from '../../../src/http/http-app.ts'
import { loadUsers } from '../../support/loaded-users.ts'
import { tempFolder } from '../../support/temp-folder.ts'

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

async function attempt(authorization: string | undefined, needed: Role) {
  const state: RequestState = { requestId: 'x' }
  const req = requestOf({ authorization })
  const error = await authenticate({ req, state }, needed, users).catch((thrown: unknown) => thrown)
  if (error !== undefined) assert.ok(error instanceof CapfleetError, String(error))
  return { user: state.user, role: state.role, error }
}

test('a user is admitted to what their role allows, and known', async () => {
  for (const needed of ['viewer', 'user'] as const)
    assert.deepEqual(await attempt(ANN, needed), { user: 'ann', role: 'user', error: undefined })
})

test('a user whose role is not enough is known too, and told which one is needed', async () => {
  const { user, role, error } = await attempt(ANN, 'full')
  assert.deepEqual([user, role, error?.code], ['ann', 'user', 'insufficient-scope'])
  assert.deepEqual(error?.details.members, { role: 'user', needed: 'full' })
  assert.match(error?.message ?? '', /ann has the role user; this needs full/)
})

for (const [authorization, message] of [
  [undefined, /needs a user; send HTTP Basic credentials/],
  ['', /is not HTTP Basic/],
  ['Bearer x', /is not HTTP Basic/],
  [`Basic ${btoa('ann:wrong')}`, /the user name or the password is wrong/],
  [`Basic ${btoa('bob:open sesame')}`, /the user name or the password is wrong/],
] as const) {
  test(`nobody is admitted by ${JSON.stringify(authorization)}`, async () => {
    const { user, error } = await attempt(authorization, 'viewer')
    assert.deepEqual([user, error?.code], [undefined, 'unauthenticated'])
    assert.match(error?.message ?? '', message)
  })
}

test('on an open path the right credentials make a caller known, and wrong ones leave them nobody', async () => {
  for (const [authorization, user] of [
    [ANN, 'ann'],
    [`Basic ${btoa('ann:wrong')}`, undefined],
    [undefined, undefined],
  ] as const) {
    const state: RequestState = { requestId: 'x' }
    await recognize({ req: requestOf({ authorization }), state }, users)
    assert.equal(state.user, user, String(authorization))
  }
})
