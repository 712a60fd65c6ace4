// /v1/activity: what the devices recorded, side by side, for callers who may know it.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { FLEET_ACTIVITY } from '../../../../../src/shared/contract/activity-answers.ts'
import { startFakeFleet } from '../../../../support/devices/fake-fleet.ts'
import { httpGet } from '../../../../support/http-get.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../../../support/processes/small-fleet.ts'
import { startTempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'

/** Of small-fleet.ts: two captures of 20 packets at 1 ms on each of two devices. */
const RANGE = `TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${SMALL_FLEET_START_NS + 20_000_000n}`

interface Told {
  readonly bucketNs: string
  readonly devices: readonly {
    readonly device: string
    readonly packets?: readonly number[]
    readonly error?: { readonly code: string }
  }[]
}

describe('the activity of a fleet', () => {
  let fleet: SmallFleet
  before(async () => {
    fleet = await startSmallFleet([
      { name: 'easterner', role: 'viewer', devices: 'east' },
      { name: 'filtered', role: 'user', filter: 'udp' },
    ])
  })
  after(() => fleet[Symbol.asyncDispose]())

  const ask = (query: string, user: string, path = '/v1/activity') =>
    httpGet(`${fleet.gateway.url}${path}?${query}`, { headers: fleet.gateway.basic(user) })

  test('has each device with its parts of the range', async () => {
    const answer = await ask(`${RANGE}&Buckets=4`, 'viewer')
    assert.equal(answer.status, 200, answer.body.toString())
    FLEET_ACTIVITY.parse(answer.json())
    const { bucketNs, devices } = answer.json() as unknown as Told
    assert.equal(bucketNs, '5000000')
    assert.deepEqual(
      devices.map(({ device, packets }) => [device, packets]),
      [
        ['east', [10, 10, 10, 10]],
        ['west', [10, 10, 10, 10]],
      ],
    )
    const direct = (await ask(`${RANGE}&Buckets=4`, 'viewer', '/devices/east/api/v1/activity')).json()
    assert.deepEqual(direct.packets, devices[0]?.packets)
  })

  test('has those devices that are chosen, of those that its caller sees', async () => {
    const namesFor = async (query: string, user: string) =>
      ((await ask(query, user)).json() as unknown as Told).devices.map(({ device }) => device)
    assert.deepEqual(await namesFor(`${RANGE}&Device=west`, 'viewer'), ['west'])
    assert.deepEqual(await namesFor(RANGE, 'easterner'), ['east'])
    assert.equal((await ask(`${RANGE}&Device=west`, 'easterner')).status, 404)
  })

  test('is nothing for callers whose packets must pass a filter', async () => {
    for (const path of ['/v1/activity', '/devices/east/api/v1/activity']) {
      const answer = await ask(RANGE, 'filtered', path)
      assert.deepEqual([answer.status, answer.json().code], [403, 'out-of-bounds'])
    }
  })

  test('is bounded, and takes times as downloads do', async () => {
    for (const [query, param] of [
      ['TSBegin=2&TSEnd=1', 'TSBegin'],
      [`${RANGE}&Buckets=2001`, 'Buckets'],
      [`${RANGE}&buckets=3&Strict=1`, 'buckets'],
    ] as const)
      assert.deepEqual(
        [(await ask(query, 'user')).status, (await ask(query, 'user')).json().param],
        [400, param],
      )
    assert.equal((await ask('TSBegin=-1h&TSEnd=now', 'user')).status, 200)
    assert.equal((await ask('from=1790000000000&to=1790000000020&Buckets=1', 'user')).status, 200)
    const head = await httpGet(`${fleet.gateway.url}/v1/activity?${RANGE}`, {
      method: 'HEAD',
      headers: fleet.gateway.as.user,
    })
    assert.deepEqual([head.status, head.body.length], [200, 0])
  })
})

test('a device that is unreachable, does not know the path, or lies is named in its place', async () => {
  await using redis = await TempRedis.create()
  const devices = await startFakeFleet(10, ['good', 'old', 'short', 'odd', 'away'])
  await using owned = new AsyncDisposableStack()
  for (const device of devices) owned.use(device)
  const [good, , short, odd, away] = devices
  const target = '/api/v1/activity'
  const whole = { packets: [1, 2], bytes: [3, 4], exact: true, gaps: [], dropped: [], trimmed: [] }
  good?.answers.set(target, { ...whole, more: 'x', gaps: [{ fromNs: '1', toNs: '2', more: 1 }] })
  short?.answers.set(target, { ...whole, bytes: [3] })
  odd?.answers.set(target, { ...whole, packets: [1, -2], gaps: 'none' })
  await using gateway = await startTempGateway(devices, redis.url)
  await away?.[Symbol.asyncDispose]()
  const answer = await httpGet(
    `${gateway.url}/v1/activity?TSBegin=1000000000&TSEnd=3000000000&TSUnit=nanos&Buckets=2`,
    {
      headers: gateway.as.viewer,
    },
  )
  assert.equal(answer.status, 200, answer.body.toString())
  const told = answer.json() as unknown as Told
  // A device with an older version does not report damage.
  const gaps = [{ fromNs: '1', toNs: '2' }]
  assert.deepEqual(told.devices[0], { device: 'good', ...whole, gaps, damaged: [] })
  assert.deepEqual(
    told.devices.slice(1).map(({ device, error }) => [device, error?.code]),
    [
      ['old', 'not-found'],
      ['short', 'device-protocol'],
      ['odd', 'device-protocol'],
      ['away', 'device-unreachable'],
    ],
  )
  assert.equal(answer.headers['capfleet-unreachable'], 'old, away')
})
