// Tickets at a real gateway: what a link gives access to, for whom, how often, and that it leaves no trace.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { FLEET_RANGE } from '../../../../support/devices/fake-fleet.ts'
import { httpGet } from '../../../../support/http-get.ts'
import { gatewayWorld } from '../../../../support/processes/gateway-world.ts'

const TARGET = `/devices/d0/api/v1/pcap/timerange?${FLEET_RANGE}`

interface Link {
  readonly url: string
  readonly expiresAt: string
}

describe('tickets', () => {
  const world = gatewayWorld(100, {})
  type Headers = Readonly<Record<string, string>>

  const ask = (path: string, headers: Headers = {}, method = 'GET') =>
    httpGet(world.gateway.url + path, { method, headers })
  const order = (target: string, headers: Headers = world.gateway.as.user, more = '') =>
    ask(`/v1/tickets?For=${encodeURIComponent(target)}${more}`, headers, 'POST')
  async function linkTo(target: string, headers?: Headers, more?: string): Promise<Link> {
    const answer = await order(target, headers, more)
    assert.deepEqual(
      [answer.status, answer.headers['cache-control']],
      [201, 'no-store'],
      answer.body.toString(),
    )
    return answer.json() as unknown as Link
  }
  async function assertRefused(path: string, headers?: Headers, method?: string): Promise<void> {
    const answer = await ask(path, headers, method)
    assert.equal(answer.status, 403, path)
    if (method !== 'HEAD') assert.equal(answer.json().code, 'bad-ticket')
  }

  test('admit one download, without credentials, and HEAD before it', async () => {
    const { url, expiresAt } = await linkTo(TARGET)
    assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 300_000) < 5_000)
    assert.ok(url.startsWith(`${TARGET}&Ticket=`))
    for (let looks = 0; looks < 3; looks += 1) assert.equal((await ask(url, {}, 'HEAD')).status, 200)
    const expected = await ask(TARGET, world.gateway.as.user)
    const downloaded = await ask(url)
    assert.deepEqual([downloaded.status, downloaded.body], [200, expected.body])
    assert.ok(downloaded.body.length > 24)
    await assertRefused(url)
    await assertRefused(url, {}, 'HEAD')
    await assertRefused(url, world.gateway.as.full)
  })

  test('are for the address that they were made for alone', async () => {
    const { url } = await linkTo(TARGET)
    const ticket = url.slice(url.indexOf('Ticket='))
    for (const path of [
      `/devices/d1/api/v1/pcap/timerange?${FLEET_RANGE}&${ticket}`,
      `/api/v1/pcap/timerange?${FLEET_RANGE}&${ticket}`,
      `${TARGET}&Slice=64&${ticket}`,
      `${TARGET}&&${ticket}`,
      `${TARGET}&${ticket}&rand=1`,
      `${TARGET}&${ticket}x`,
      `/devices/d0/api/v1/pcap/timerange?${ticket}&${FLEET_RANGE}`,
      `/devices/d0/api/v1/pcap/timerange?${ticket}`,
    ])
      await assertRefused(path)
    for (const path of ['/v1/devices', '/v1/tokens', '/v1/estimate', '/devices/d0/stream/list'])
      assert.equal((await ask(`${path}?${ticket}`)).status, 401, path)
    assert.equal((await ask(`/v1/tokens?${ticket}`, {}, 'POST')).status, 401)
    assert.equal((await ask(url)).status, 200, 'none of these has used it up')
  })

  test('choose no devices by a header, and order no exports', async () => {
    const { url } = await linkTo(`/api/v1/pcap/timerange?${FLEET_RANGE}&Device=d0`)
    assert.equal((await ask(url, { 'capfleet-device': 'd1' })).status, 200)
    const job = await linkTo(`/api/v1/pcap/timerange?${FLEET_RANGE}&Queue=job`)
    const refused = await ask(job.url)
    assert.deepEqual([refused.status, refused.json().code], [403, 'insufficient-scope'])
  })

  test('are won by one of twenty who come at once', async () => {
    const { url } = await linkTo(TARGET)
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(url)))
    const won = answers.filter(({ status }) => status === 200)
    const lost = answers.filter(({ status, json }) => status === 403 && json().code === 'bad-ticket')
    assert.deepEqual([won.length, lost.length], [1, 19])
  })

  test('leave no trace: not in the log, not at devices, not in Redis, not in the receipt', async () => {
    const { url } = await linkTo(TARGET)
    const ticket = url.slice(url.indexOf('Ticket=') + 'Ticket='.length)
    const redis = new Redis(world.redis.url)
    const inRedis = async () => {
      const keys = await redis.keys('*')
      const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)))
      return [...keys, ...dumps].some((entry) => entry?.includes(ticket))
    }
    assert.ok(!(await inRedis()))
    const { status, headers } = await ask(url)
    assert.equal(status, 200)
    const id = String(headers['capfleet-request-id'])
    assert.equal(headers['capfleet-ignored'], undefined)
    const receipt = await ask(`/v1/requests/${id}`, world.gateway.as.user)
    assert.deepEqual([receipt.status, receipt.body.includes(ticket)], [200, false])
    assert.ok(!(await inRedis()))
    redis.disconnect()
    assert.ok(!JSON.stringify(world.gateway.logged).includes(ticket))
    const atDevices = world.fleet.flatMap(({ requests }) => requests)
    assert.ok(atDevices.length > 0)
    assert.ok(!JSON.stringify(atDevices).includes('icket'))
  })

  test('go with the token by which they were made, and with the user', async () => {
    const made = await ask('/v1/tokens', world.gateway.as.user, 'POST')
    const { id, token } = made.json()
    const ofToken = await linkTo(TARGET, { authorization: `Bearer ${token}` })
    const other = await linkTo(TARGET)
    assert.equal((await ask(`/v1/tokens/${id}`, world.gateway.as.user, 'DELETE')).status, 200)
    const refused = await ask(ofToken.url)
    assert.deepEqual([refused.status, refused.json().code], [401, 'unauthenticated'])
    assert.equal((await ask(other.url)).status, 200)
  })

  for (const [what, query, param] of [
    ['no For', '', 'For'],
    ['a path that is no download', 'For=/v1/devices', 'For'],
    ['an estimate', 'For=/api/v1/pcap/estimate', 'For'],
    ['another host', 'For=https://elsewhere.example/api/v1/pcap/timerange', 'For'],
    ['a fragment', 'For=/api/v1/pcap/timerange%23x', 'For'],
    ['a space', 'For=/api/v1/pcap/timerange?FilterBPF=udp+port+53', 'For'],
    ['a line end', 'For=/api/v1/pcap/timerange?a=%0d%0aSet-Cookie:x', 'For'],
    ['a ticket already', 'For=/api/v1/pcap/timerange?a=b?c%26Ticket=x', 'For'],
    ['a & that is not escaped', 'For=/api/v1/pcap/timerange?TSBegin=-1h&TSEnd=now', 'TSEnd'],
    ['two hours', 'For=/api/v1/pcap/timerange&Lifetime=2h', 'Lifetime'],
  ] as const) {
    test(`are not made for ${what}`, async () => {
      const answer = await ask(`/v1/tickets?${query}`, world.gateway.as.user, 'POST')
      assert.deepEqual([answer.status, answer.json().param], [400, param], answer.body.toString())
    })
  }

  test('are not created for users who may not download, nor for pages of other sites', async () => {
    assert.equal((await order(TARGET, world.gateway.as.viewer)).json().code, 'insufficient-scope')
    const headers = { ...world.gateway.as.user, origin: 'https://elsewhere.example' }
    assert.equal((await order(TARGET, headers)).json().code, 'cross-site')
  })

  test('expire', async () => {
    const { url } = await linkTo(TARGET, world.gateway.as.user, '&Lifetime=1')
    const redis = new Redis(world.redis.url)
    const keys = await redis.keys('*:ticket:is:*')
    const left = await Promise.all(keys.map((key) => redis.pttl(key)))
    const [shortest] = keys.toSorted((a, b) => (left[keys.indexOf(a)] ?? 0) - (left[keys.indexOf(b)] ?? 0))
    assert.ok(shortest !== undefined && (await redis.pttl(shortest)) <= 1_000)
    await redis.pexpire(shortest, 0)
    redis.disconnect()
    await assertRefused(url)
  })
})
