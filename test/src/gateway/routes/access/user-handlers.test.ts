// Lists for the page: users, and receipts of one's own downloads.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { DEVICE_REPORTS, RECEIPTS, USERS } from '../../../../../src/shared/contract/gateway-answers.ts'
import { httpGet } from '../../../../support/http-get.ts'
import { type SmallFleet, startSmallFleet } from '../../../../support/processes/small-fleet.ts'

describe('a gateway reports', () => {
  let fleet: SmallFleet
  before(async () => {
    fleet = await startSmallFleet([{ name: 'easterner', role: 'user', devices: 'east', streamsMax: 2 }])
  })
  after(() => fleet[Symbol.asyncDispose]())
  const ask = (path: string, user: string) =>
    httpGet(fleet.gateway.url + path, { headers: fleet.gateway.basic(user) })

  test('admins who the users are, without what proves it', async () => {
    const answer = await ask('/v1/users', 'admin')
    assert.equal(answer.status, 200)
    const { users } = USERS.parse(answer.json())
    assert.deepEqual(
      users.map(({ name }) => name),
      ['viewer', 'user', 'full', 'admin', 'easterner'],
    )
    assert.deepEqual(users.at(-1), { name: 'easterner', role: 'user', devices: 'east', streamsMax: 2 })
    assert.ok(!answer.body.toString().includes('argon2'))
    for (const user of ['full', 'user', 'viewer']) assert.equal((await ask('/v1/users', user)).status, 403)
  })

  test('callers what became of their downloads, the newest first', async () => {
    const names = ['east-first', 'west-first', 'west-second']
    for (const name of names) await ask(`/api/v1/pcap/single?StreamName=${name}`, 'user')
    const answer = await ask('/v1/requests', 'user')
    const { requests } = RECEIPTS.parse(answer.json())
    assert.deepEqual(
      requests.map(({ query }) => /StreamName=([^&]*)/.exec(query)?.[1]),
      names.toReversed(),
    )
    assert.ok(requests.every(({ user, status }) => user === 'user' && status === 'complete'))
    assert.equal(RECEIPTS.parse((await ask('/v1/requests?Limit=1', 'user')).json()).requests.length, 1)
    assert.deepEqual((await ask('/v1/requests', 'full')).json(), { requests: [] })
    assert.equal((await ask('/v1/requests', 'viewer')).status, 403)
  })

  test('what devices capture, and how much room they have', async () => {
    const { devices } = DEVICE_REPORTS.parse((await ask('/v1/devices', 'viewer')).json())
    for (const { capture, storeBytes, storeFreeBytes } of devices) {
      assert.deepEqual([capture?.state, capture?.name], ['idle', null])
      assert.ok((storeBytes ?? 0) > 0 && (storeFreeBytes ?? 0) > 0)
    }
  })
})
