// Tokens at a real gateway: which are issued, which are rejected, who sees them, and what happens to downloads that use
// them.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { FLEET_RANGE, startFakeFleet } from '../../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../../support/eventually.ts'
import { type HttpAnswer, httpGet, httpOpen } from '../../../../support/http-get.ts'
import { type SmallFleet, startSmallFleet } from '../../../../support/processes/small-fleet.ts'
import { startTempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'
import { OidcServer } from '../../../../support/servers/oidc-server.ts'

interface ShownToken {
  readonly id: string
  readonly token: string
  readonly user: string
  readonly scopes: readonly string[]
  readonly expiresAt: string
  readonly revokedAt: string | null
}

type Headers = Readonly<Record<string, string>>

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })
const shown = (answer: HttpAnswer) => answer.json() as unknown as ShownToken

describe('tokens of a gateway', () => {
  let fleet: SmallFleet
  before(async () => {
    fleet = await startSmallFleet()
  })
  after(() => fleet[Symbol.asyncDispose]())

  const ask = (method: string, path: string, headers: Headers) =>
    httpGet(fleet.gateway.url + path, { method, headers })
  const order = (query: string, headers: Headers = fleet.gateway.as.full) =>
    ask('POST', `/v1/tokens?${query}`, headers)
  async function issue(query: string, headers?: Headers): Promise<ShownToken> {
    const answer = await order(query, headers)
    assert.equal(answer.status, 201, answer.body.toString())
    assert.equal(answer.headers['cache-control'], 'no-store')
    return shown(answer)
  }
  async function listed(headers: Headers): Promise<readonly string[]> {
    const { tokens } = (await ask('GET', '/v1/tokens', headers)).json() as { tokens: ShownToken[] }
    assert.ok(tokens.every((token) => token.token === undefined))
    return tokens.map(({ id }) => id)
  }

  test('are good for what they were made for, and no more', async () => {
    const made = await issue('Scopes=device:read&Lifetime=10m&Note=for+the+dashboard')
    const { id, token, expiresAt, ...rest } = made
    assert.deepEqual(
      { ...rest, createdAt: undefined },
      {
        kind: 'token',
        user: 'full',
        scopes: ['device:read'],
        bounds: { devices: [], filters: [], quotas: [] },
        note: 'for the dashboard',
        parentId: null,
        createdAt: undefined,
        revokedAt: null,
      },
    )
    assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 600_000) < 5_000)
    assert.equal((await ask('GET', '/v1/devices', bearer(token))).status, 200)
    const refused = await ask('GET', '/v1/queue', bearer(token))
    assert.deepEqual([refused.status, refused.json().code], [403, 'insufficient-scope'])
    assert.ok((await listed(fleet.gateway.as.full)).includes(id))
  })

  test('end when they should, in a zone or in that of the gateway', async () => {
    const tomorrow = new Date(Math.floor(Date.now() / 1_000) * 1_000 + 86_400_000)
    const text = tomorrow.toISOString()
    const { expiresAt: inADay } = await issue('Expires=%2B1d')
    assert.ok(Math.abs(Date.parse(inADay) - Date.now() - 86_400_000) < 60_000)
    for (const written of [text, text.replace('Z', '%2B00:00'), text.replace('.000Z', '')]) {
      const { expiresAt } = await issue(`Expires=${written}`)
      assert.equal(Date.parse(expiresAt), tomorrow.getTime(), written)
    }
  })

  test('see only their devices, and take only what passes their filter', async () => {
    const { token } = await issue('Devices=ea*&Filter=udp+port+1')
    const { devices } = (await ask('GET', '/v1/devices', bearer(token))).json() as {
      devices: { name: string }[]
    }
    assert.deepEqual(
      devices.map(({ name }) => name),
      ['east'],
    )
    const packets = await ask('GET', '/api/v1/pcap/single?StreamName=east-first', bearer(token))
    assert.deepEqual([packets.status, packets.body.length], [200, 24])
    assert.equal((await ask('GET', '/api/v1/pcap/single?StreamName=west-first', bearer(token))).status, 404)
  })

  for (const [query, status, code, param] of [
    ['Scopes=admin', 403, 'insufficient-scope', 'Scopes'],
    ['Scopes=everything', 400, 'bad-parameter', 'Scopes'],
    ['Lifetime=91d', 403, 'out-of-bounds', 'Lifetime'],
    ['Lifetime=0', 400, 'bad-parameter', 'Lifetime'],
    ['Expires=2026-11-02T09:00:00Z', 400, 'bad-parameter', 'Expires'],
    ['Expires=2105-01-01', 403, 'out-of-bounds', 'Expires'],
    ['Expires=friday+evening', 400, 'bad-parameter', 'Expires'],
    ['Expires=', 400, 'bad-parameter', 'Expires'],
    ['Expires=2105-01-01&Lifetime=1h', 400, 'bad-parameter', 'Expires'],
    ['Devices=moon', 404, 'unknown-device', 'Devices'],
    ['Devices=', 400, 'bad-parameter', 'Devices'],
    ['Scopes=', 400, 'bad-parameter', 'Scopes'],
    ['Filter=', 400, 'bad-parameter', 'Filter'],
    ['StreamsMax=', 400, 'bad-parameter', 'StreamsMax'],
    ['Lifetime=', 400, 'bad-parameter', 'Lifetime'],
    ['Filter=(udp', 400, 'bad-parameter', 'Filter'],
    ['Filter=udp)+or+(tcp', 400, 'bad-parameter', 'Filter'],
    ['Filter=no+filter+at+all', 400, 'bad-bpf', 'Filter'],
    ['SpanMax=0', 400, 'bad-parameter', 'SpanMax'],
    ['lifetime=1h', 400, 'bad-parameter', 'lifetime'],
  ] as const) {
    test(`POST /v1/tokens?${query} is answered ${status} ${code ?? ''}`, async () => {
      const answer = await order(query)
      const { code: told, param: named } = answer.json()
      assert.deepEqual([answer.status, told, named], [status, code, param], answer.body.toString())
    })
  }

  test('never exceed or outlive the token that made them', async () => {
    const made = await issue(
      'Scopes=device:read,queue:read&Lifetime=1h&SpanMax=1m&StreamsMax=2&BytesPerDay=1000',
    )
    const own = bearer(made.token)
    for (const [query, param] of [
      ['Scopes=capture:download', 'Scopes'],
      ['Lifetime=2h', 'Lifetime'],
      [`Expires=${new Date(Date.now() + 7_200_000).toISOString()}`, 'Expires'],
      ['SpanMax=61', 'SpanMax'],
      ['StreamsMax=3', 'StreamsMax'],
      ['BytesPerDay=1001', 'BytesPerDay'],
    ]) {
      const answer = await order(query ?? '', own)
      assert.deepEqual([answer.status, answer.json().param], [403, param], query)
    }
    const tagged = bearer((await issue('Filter=vlan+10')).token)
    const both = await order('Filter=mpls', tagged)
    assert.deepEqual([both.status, both.json().code], [403, 'out-of-bounds'], 'no filter can mean both')
    await issue('Filter=udp', tagged)
    const child = await issue('', own)
    assert.deepEqual(child.scopes, ['device:read', 'queue:read'])
    assert.ok(Date.parse(child.expiresAt) <= Date.parse(made.expiresAt))
  })

  test('hang on each other at most four deep, and go with the first', async () => {
    const chain = [await issue('')]
    for (let depth = 2; depth <= 4; depth += 1) chain.push(await issue('', bearer(chain.at(-1)?.token ?? '')))
    const [first, , , last] = chain as [ShownToken, ShownToken, ShownToken, ShownToken]
    assert.equal((await order('', bearer(last.token))).json().code, 'out-of-bounds')
    assert.equal((await ask('GET', '/v1/devices', bearer(last.token))).status, 200)
    const revoked = await ask('DELETE', `/v1/tokens/${first.id}`, fleet.gateway.as.full)
    assert.equal(revoked.status, 200)
    assert.notEqual(shown(revoked).revokedAt, null)
    for (const { token } of chain) {
      const answer = await ask('GET', '/v1/devices', bearer(token))
      assert.deepEqual([answer.status, answer.json().code], [401, 'unauthenticated'])
      assert.match(String(answer.headers['www-authenticate']), /Basic .*Bearer .*error="invalid_token"/)
    }
  })

  test('see themselves and what they made; a password sees all of its user, an admin all', async () => {
    const [mine, other] = [await issue(''), await issue('')]
    const child = await issue('', bearer(mine.token))
    assert.deepEqual((await listed(bearer(mine.token))).toSorted(), [mine.id, child.id].toSorted())
    for (const headers of [fleet.gateway.as.full, fleet.gateway.as.admin]) {
      const all = await listed(headers)
      assert.ok([mine, other, child].every(({ id }) => all.includes(id)))
    }
    assert.deepEqual(await listed(fleet.gateway.as.viewer), [])
    for (const headers of [bearer(mine.token), fleet.gateway.as.viewer]) {
      const answer = await ask('DELETE', `/v1/tokens/${other.id}`, headers)
      assert.deepEqual([answer.status, answer.json().code], [404, 'unknown-token'])
    }
    assert.equal((await ask('DELETE', `/v1/tokens/${other.id}`, fleet.gateway.as.admin)).status, 200)
    assert.equal((await ask('GET', '/v1/devices', bearer(other.token))).status, 401)
  })

  test('are not made for pages of other sites', async () => {
    const headers = { ...fleet.gateway.as.full, origin: 'https://elsewhere.example' }
    assert.equal((await order('', headers)).json().code, 'cross-site')
    const { id } = await issue('')
    assert.equal((await ask('DELETE', `/v1/tokens/${id}`, headers)).json().code, 'cross-site')
  })

  test('are listed as a login method, next to passwords', async () => {
    const answer = await ask('GET', '/v1/devices', {})
    assert.equal(
      answer.headers['www-authenticate'],
      'Basic realm="capfleet", charset="UTF-8", Bearer realm="capfleet"',
    )
    assert.match(String(answer.json().detail), /Authorization: Bearer TOKEN/)
  })
})

describe('tokens of two gateways that share keys and Redis', () => {
  const owned = new AsyncDisposableStack()
  after(() => owned.disposeAsync())

  test('a revoked token is soon refused by both, and a download that runs by it is cut', async () => {
    const redis = owned.use(await TempRedis.create())
    const fleet = await startFakeFleet(20_000)
    for (const device of fleet) owned.use(device)
    const one = owned.use(await startTempGateway(fleet, redis.url))
    const auth = { tokens: { keys: join(one.config.home, 'token-keys') } }
    const two = owned.use(await startTempGateway(fleet, redis.url, { auth }))
    const made = await httpGet(`${one.url}/v1/tokens`, { method: 'POST', headers: one.as.full })
    const { id, token } = shown(made)
    const kept = new Redis(redis.url)
    const keys = await kept.keys('*:token:*')
    assert.ok(keys.length >= 3)
    for (const key of keys)
      assert.ok(!JSON.stringify(await kept.hgetall(key).catch(() => '')).includes(token))
    kept.disconnect()
    for (const device of fleet) device.behaviour = { chunkBytes: 1_000, pauseMs: 20 }
    using download = await httpOpen(`${two.url}/api/v1/pcap/timerange?${FLEET_RANGE}`, {
      headers: bearer(token),
    })
    assert.equal(download.response.statusCode, 200)
    let isCut = false
    download.response.on('error', () => {
      isCut = true
    })
    download.response.resume()
    const revoked = await httpGet(`${one.url}/v1/tokens/${id}`, { method: 'DELETE', headers: one.as.full })
    assert.equal(revoked.status, 200, revoked.body.toString())
    const ask = (url: string) => httpGet(`${url}/v1/devices`, { headers: bearer(token) })
    assert.equal((await ask(one.url)).status, 401, 'at once by the gateway that was told')
    const isRefused = async () => (await ask(two.url)).status === 401
    await eventually(isRefused, { message: 'the other gateway knows' })
    await eventually(() => isCut, { message: 'the download is cut' })
  })
})

describe('users of an identity provider', () => {
  test('use the gateway by its tokens, hand on what they have, and leave nothing that outlives them', async () => {
    await using oidc = await OidcServer.start('ES256', 'one')
    await using redis = await TempRedis.create()
    const [device] = await startFakeFleet(10, ['d0'])
    assert.ok(device !== undefined)
    await using _device = device
    const roles = [{ group: 'operators', role: 'full' }]
    const jwks = { url: oidc.keysUrl }
    const provider = { name: 'corp', issuer: oidc.issuer, audience: oidc.audience, jwks, roles }
    await using gateway = await startTempGateway([device], redis.url, { auth: { providers: [provider] } })
    const ask = (method: string, path: string, token: string) =>
      httpGet(gateway.url + path, { method, headers: bearer(token) })
    oidc.groups = ['guests']
    const refused = await ask('GET', '/v1/devices', await oidc.token())
    assert.deepEqual([refused.status, refused.json().code], [403, 'insufficient-scope'])
    oidc.groups = ['operators']
    const token = await oidc.token()
    const path = `/api/v1/pcap/timerange?${FLEET_RANGE}`
    const downloaded = await ask('GET', path, token)
    assert.deepEqual([downloaded.status, downloaded.body.length > 24], [200, true])
    const child = shown(await ask('POST', '/v1/tokens?Scopes=device:read', token))
    assert.deepEqual(
      [child.user, (await ask('GET', '/v1/devices', child.token)).status],
      ['corp:collector', 200],
    )
    const { url } = (await ask('POST', `/v1/tickets?For=${encodeURIComponent(path)}`, token)).json()
    assert.equal((await httpGet(gateway.url + String(url))).status, 200)
    const schedule = await ask('POST', '/v1/schedules?Cron=5+*+*+*+*&TSBegin=-1h&TSEnd=now', token)
    assert.deepEqual([schedule.status, schedule.json().code], [403, 'out-of-bounds'])
    // With another token of the provider they see what they created and can revoke it; with one of our tokens they
    // cannot.
    const sibling = shown(await ask('POST', '/v1/tokens?Scopes=device:read', token))
    const listed = async (by: string) => {
      const { tokens } = (await ask('GET', '/v1/tokens', by)).json() as { tokens: ShownToken[] }
      return tokens.map(({ id }) => id).sort()
    }
    const later = await oidc.token()
    assert.deepEqual(await listed(later), [child.id, sibling.id].sort())
    assert.deepEqual(await listed(child.token), [child.id])
    const foreign = await ask('DELETE', `/v1/tokens/${sibling.id}`, child.token)
    assert.deepEqual([foreign.status, foreign.json().code], [404, 'unknown-token'])
    const revoked = await ask('DELETE', `/v1/tokens/${child.id}`, later)
    assert.equal(revoked.status, 200, revoked.body.toString())
    assert.equal((await ask('GET', '/v1/devices', child.token)).status, 401)
  })
})
