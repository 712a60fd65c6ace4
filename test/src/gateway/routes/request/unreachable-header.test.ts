import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unreachableHeader } from '../../../../../src/gateway/routes/request/unreachable-header.ts'
import { httpGet } from '../../../../support/http-get.ts'
import { startTempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'
import { DEVICE_PASSWORD } from '../../../../support/suite-secrets.ts'

const named = (count: number, length: number) =>
  Array.from({ length: count }, (_, index) => `d${index}`.padEnd(length, 'x'))

test('names all devices if there is room, and otherwise says how many more there are', () => {
  assert.equal(unreachableHeader(['a', 'b']), 'a, b')
  const fitting = named(16, 62)
  assert.equal(unreachableHeader(fitting).length, 1_022)
  assert.equal(unreachableHeader(fitting), fitting.join(', '))
  for (const [count, length] of [
    [17, 62],
    [500, 4],
    [500, 64],
    [100_000, 5],
  ] as const) {
    const names = named(count, length)
    const text = unreachableHeader(names)
    assert.ok(text.length <= 1_024 && text.length > 900, `${text.length} bytes`)
    const shown = text.split(', ')
    const last = shown.pop()
    assert.deepEqual(shown, names.slice(0, shown.length))
    assert.equal(last, `and ${count - shown.length} more`)
  }
})

test('300 devices that do not answer fit into the head of each answer, and its body names all', async () => {
  await using parts = new AsyncDisposableStack()
  const redis = parts.use(await TempRedis.create())
  const names = named(300, 60)
  // Nothing listens at this port of any address.
  const devices = names.map((name, index) => ({
    config: {
      name,
      url: `http://127.${1 + (index >> 8)}.0.${index & 255}:1`,
      user: 'gateway',
      password: { env: 'FAKE_DEVICE_PASSWORD' },
    },
    password: DEVICE_PASSWORD,
  }))
  const gateway = parts.use(await startTempGateway(devices, redis.url))
  const range = 'TSBegin=1793610000&TSEnd=1793610060'
  for (const [path, member] of [
    ['/stream/list', 'Unreachable'],
    [`/v1/estimate?${range}`, 'devices'],
    [`/v1/activity?${range}&Buckets=2`, 'devices'],
  ] as const) {
    const answer = await httpGet(gateway.url + path, { headers: gateway.as.user })
    assert.equal(answer.status, 200, answer.body.toString().slice(0, 1_000))
    assert.match(String(answer.headers['capfleet-unreachable']), /^d0x+, .*, and 28\d more$/)
    assert.equal((answer.json()[member] as readonly unknown[]).length, 300, path)
  }
})
