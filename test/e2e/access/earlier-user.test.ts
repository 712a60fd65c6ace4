// A new user gets the name of a removed user, and must not get what the earlier user left.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { putUser, removeUser } from '../../../src/shared/auth/edit-users-file.ts'
import { eventually } from '../../support/eventually.ts'
import { type HttpAnswer, httpGet } from '../../support/http-get.ts'
import { type SmallFleet, startSmallFleet } from '../../support/processes/small-fleet.ts'
import { USER_PASSWORD } from '../../support/suite-secrets.ts'

const RANGE = 'TSBegin=1790000000000000000&TSEnd=1790000001000000000&TSUnit=nanos'
const TICKET_TARGET = '/api/v1/pcap/single?StreamName=east-first'

const ORDER = `/v1/exports?${RANGE}`
const SCHEDULE = '/v1/schedules?Cron=5+*+*+*+*&TSBegin=-1h&TSEnd=now'
const KEY = { 'idempotency-key': 'daily' }

interface Left {
  readonly token: string
  readonly tokenId: string
  readonly cookie: string
  readonly ticket: string
  readonly receipt: string
  readonly exported: string
  readonly schedule: string
}

for (const role of ['user', 'full'] as const)
  describe(`a name that belonged to someone else, of the role ${role}`, () => {
    let fleet: SmallFleet
    let left: Left
    let keyed: string
    before(async () => {
      fleet = await startSmallFleet()
      left = await leaveAll()
      keyed = String((await made(ORDER, { ...fleet.gateway.as[role], ...KEY })).json().id)
      for (const path of [ORDER, SCHEDULE]) await useUp(path)
      const { users } = fleet.gateway.config.auth
      await removeUser(users, role)
      await fleet.gateway.reloadUsers()
      // Now the second in which all of that was created is over.
      await putUser(users, { name: role, role, since: new Date(Date.now() + 1_000) }, USER_PASSWORD)
      await fleet.gateway.reloadUsers()
    })
    after(() => fleet[Symbol.asyncDispose]())

    type Headers = Readonly<Record<string, string>>
    const ask = (path: string, headers: Headers = fleet.gateway.as[role], method = 'GET') =>
      httpGet(fleet.gateway.url + path, { method, headers })
    const made = async (path: string, headers?: Headers): Promise<HttpAnswer> => {
      const answer = await ask(path, headers, 'POST')
      assert.ok(answer.status < 300, `${path}: ${answer.body}`)
      return answer
    }
    const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })

    /** Orders until the user's limit is reached. */
    async function useUp(path: string): Promise<void> {
      for (;;) {
        const answer = await ask(path, undefined, 'POST')
        if (answer.json().code === 'user-quota') return
        assert.ok(answer.status < 300, `${path}: ${answer.body}`)
      }
    }

    async function leaveAll(): Promise<Left> {
      const { token, id: tokenId } = (await made('/v1/tokens')).json() as Record<string, string>
      const session = await made('/v1/session', { ...bearer(String(token)), 'x-capfleet-form': '1' })
      const ticket = await made(`/v1/tickets?For=${encodeURIComponent(TICKET_TARGET)}`, bearer(String(token)))
      const download = await ask(`/api/v1/pcap/timerange?${RANGE}`)
      assert.equal(download.status, 200)
      return {
        token: String(token),
        tokenId: String(tokenId),
        cookie: String(session.headers['set-cookie']).split(';', 1)[0] ?? '',
        ticket: String(ticket.json().url),
        receipt: String(download.headers['capfleet-request-id']),
        exported: String((await made(`/v1/exports?${RANGE}`)).json().id),
        schedule: String((await made(SCHEDULE)).json().id),
      }
    }

    test('opens nothing by what the earlier user has kept', async () => {
      const byToken = await ask('/v1/devices', bearer(left.token))
      assert.deepEqual([byToken.status, byToken.json().code], [401, 'unauthenticated'])
      assert.match(String(byToken.json().detail), /belongs to a former user of the same name/)
      assert.equal((await ask('/v1/devices', { cookie: left.cookie })).status, 401)
      assert.equal((await ask(left.ticket, {})).status, 401)
    })

    test('has nothing of the earlier user’s among its own', async () => {
      // For the role "full", they are listed among those of other users.
      const paths = ['/v1/requests', ...(role === 'user' ? ['/v1/exports', '/v1/schedules'] : [])]
      for (const path of paths) {
        const [rows = []] = Object.values((await ask(path)).json()) as (readonly { id: string }[])[]
        assert.deepEqual(rows, [], path)
      }
      const { tokens } = (await ask('/v1/tokens')).json() as { tokens: readonly { id: string }[] }
      assert.ok(tokens.every(({ id }) => id !== left.tokenId))
    })

    test('orders with a key that the earlier user had used too', async () => {
      const own = { ...fleet.gateway.as[role], ...KEY }
      // Its name belongs to the new user once the next second has begun.
      await eventually(async () => (await ask(ORDER, undefined, 'POST')).status === 202, {
        message: 'orders',
      })
      const answer = await ask(ORDER, own, 'POST')
      assert.equal(answer.status, 202, answer.body.toString())
      assert.notEqual(answer.json().id, keyed)
    })

    test('has room, however much the earlier user left', async () => {
      for (const path of [ORDER, SCHEDULE]) await made(path)
    })

    test('continues no download of the earlier user, and changes nothing of theirs', async () => {
      const { receipt, exported, schedule, tokenId } = left
      const resumed = await ask(`/api/v1/pcap/timerange?Resume=${receipt}&Offset=24`)
      assert.deepEqual([resumed.status, resumed.json().code], [404, 'unknown-request'])
      assert.equal((await ask(`/v1/tokens/${tokenId}`, undefined, 'DELETE')).status, 404)
      for (const path of [`/v1/exports/${exported}`, `/v1/schedules/${schedule}`])
        assert.equal((await ask(path, undefined, 'DELETE')).status, role === 'user' ? 404 : 403, path)
    })

    test('has what its user makes, and the administrator what the earlier one left', async () => {
      const { admin } = fleet.gateway.as
      const isTaken = async () => {
        const { token } = (await made('/v1/tokens')).json()
        return (await ask('/v1/devices', bearer(String(token)))).status === 200
      }
      await eventually(isTaken, { message: 'a token of the user is taken' })
      for (const path of [`/v1/requests/${left.receipt}`, `/v1/exports/${left.exported}`])
        assert.equal((await ask(path, admin)).status, 200, path)
      assert.equal((await ask(`/v1/exports/${left.exported}`, admin, 'DELETE')).status, 200)
      assert.equal((await ask(`/v1/schedules/${left.schedule}`, admin, 'DELETE')).status, 200)
    })
  })

test('a user who was added on a computer whose clock is ahead can use what they make', async () => {
  await using fleet = await startSmallFleet()
  const { users } = fleet.gateway.config.auth
  await removeUser(users, 'user')
  await fleet.gateway.reloadUsers()
  await putUser(users, { name: 'user', role: 'user', since: new Date(Date.now() + 60_000) }, USER_PASSWORD)
  await fleet.gateway.reloadUsers()
  const ask = (path: string, headers: Readonly<Record<string, string>>, method = 'GET') =>
    httpGet(fleet.gateway.url + path, { method, headers })
  const { token } = (await ask('/v1/tokens', fleet.gateway.as.user, 'POST')).json()
  const byToken = await ask('/v1/devices', { authorization: `Bearer ${token}` })
  const ordered = await ask(ORDER, fleet.gateway.as.user, 'POST')
  assert.deepEqual([byToken.status, ordered.status], [200, 202], `${byToken.body}${ordered.body}`)
})
