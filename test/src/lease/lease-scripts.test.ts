import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { LeaseScripts } from '../../../src/lease/lease-scripts.ts'
import { LEASE_TIMINGS } from '../../../src/lease/lease-timings.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'

test('asks reach Redis as they are, whatever characters the name of a user has', async () => {
  await using server = await TempRedis.create()
  await server.settle('test')
  const redis = new Redis(server.url)
  const context = { redis, keyPrefix: 'test', replica: 'x', streamsPerDevice: 1, timings: LEASE_TIMINGS }
  const scripts = new LeaseScripts(context)
  await scripts.heartbeat()
  const users = ['two words', '"quoted", [1]', 'Zoë \\ 東', '']
  const asks = users.map((user, i) => ({
    kind: 'enqueue' as const,
    id: `r${i}`,
    devices: ['a', 'b'],
    class: 'interactive' as const,
    user,
    attempt: i,
  }))
  const replies = await scripts.exchange([...asks, { kind: 'release', id: 'r1', attempt: 1 }])
  assert.deepEqual(
    replies.map(({ state, position }) => [state, position]),
    [
      ['g', 0],
      ['w', 1],
      ['w', 2],
      ['w', 3],
      ['w', 0],
    ],
  )
  const rows = await scripts.places(['r0', 'r1', 'r2', 'r3'])
  assert.deepEqual(
    rows.map(({ id, user, devices, position }) => [id, user, devices.join(), position]),
    [
      ['r0', 'two words', 'a,b', undefined],
      ['r2', 'Zoë \\ 東', 'a,b', 1],
      ['r3', '', 'a,b', 2],
    ],
  )
  assert.deepEqual(await scripts.exchange([]), [])
  redis.disconnect()
})
