// Sessions of the page at a real gateway over real appliances: cookies, changes, and the effect of a session's end on
// what runs under it.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type AuditEntry, auditEntries } from '../../../../support/access/temp-audit.ts'
import { startFakeFleet } from '../../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../../support/eventually.ts'
import { type HttpAnswer, httpGet, httpOpen } from '../../../../support/http-get.ts'
import { pause } from '../../../../support/pause.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../../../support/processes/small-fleet.ts'
import { startTempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'
import { OidcServer } from '../../../../support/servers/oidc-server.ts'
import { refuseSecretsIn } from '../../../../support/suite-secrets.ts'

type Headers = Readonly<Record<string, string>>

interface Shown {
  readonly user: string
  readonly credential: string
  readonly origin: string
  readonly scopes: readonly string[]
  readonly bounds: { readonly devices: readonly string[] }
  readonly formToken: string
  readonly expiresAt: string
  readonly endsAt: string
}

/** What a browser has after signing in. */
interface Session {
  readonly shown: Shown
  readonly cookie: string
  /** The session's entry in the list. */
  readonly place: string
  /** Headers of a read. */
  readonly reading: Headers
  /** Headers of a change. */
  readonly changing: Headers
}

const RANGE = `TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${SMALL_FLEET_START_NS + 1_000_000_000n}`

const shownIn = (answer: HttpAnswer) => answer.json() as unknown as Shown
const setCookieOf = ({ headers }: HttpAnswer) => headers['set-cookie']?.[0] ?? ''
const codeOf = (answer: HttpAnswer) => [answer.status, answer.json().code]

function sessionOf(answer: HttpAnswer): Session {
  assert.equal(answer.status, 201, answer.body.toString())
  const [cookie = ''] = setCookieOf(answer).split(';')
  const shown = shownIn(answer)
  const place = String(answer.headers.location)
  return {
    shown,
    cookie,
    place,
    reading: { cookie },
    changing: { cookie, 'x-capfleet-form': shown.formToken },
  }
}

async function signIn(url: string, credentials: Headers, query = ''): Promise<Session> {
  return sessionOf(await httpGet(`${url}/v1/session${query}`, { method: 'POST', headers: credentials }))
}

describe('a session', () => {
  let fleet: SmallFleet
  before(async () => {
    fleet = await startSmallFleet([{ name: 'easterner', role: 'user', devices: 'east' }])
  })
  after(() => fleet[Symbol.asyncDispose]())

  const ask = (method: string, path: string, headers: Headers) =>
    httpGet(fleet.gateway.url + path, { method, headers })
  const enter = (user: string, query?: string) => signIn(fleet.gateway.url, fleet.gateway.basic(user), query)

  test('begins with a password, in a cookie that no script and no other site can use', async () => {
    const answer = await ask('POST', '/v1/session?Path=/capture/', fleet.gateway.as.user)
    assert.match(
      setCookieOf(answer),
      /^capfleet-session=[\w-]+\.[\w-]+\.[\w-]+; Path=\/capture\/; HttpOnly; SameSite=Strict$/,
    )
    assert.equal(answer.headers['cache-control'], 'no-store')
    const { shown } = sessionOf(answer)
    assert.deepEqual(
      [shown.user, shown.credential, shown.scopes.includes('capture:download')],
      ['user', 'session', true],
    )
    assert.ok(Math.abs(Date.parse(shown.expiresAt) - Date.now() - 1_800_000) < 5_000)
    assert.ok(Math.abs(Date.parse(shown.endsAt) - Date.now() - 43_200_000) < 5_000)
    const elsewhere = { ...fleet.gateway.as.user, host: 'gateway.example' }
    assert.match(setCookieOf(await ask('POST', '/v1/session', elsewhere)), /; Path=\/; .*; Secure$/)
  })

  test('reads what its user may read, and is extended on request', async () => {
    const session = await enter('user')
    for (const path of ['/v1/devices', '/v1/queue', '/api/v1/pcap/single?StreamName=east-first'])
      assert.equal((await ask('GET', path, session.reading)).status, 200, path)
    await pause(1_100, 'the times of a session are whole seconds')
    const again = await ask('GET', '/v1/session', session.reading)
    assert.equal(shownIn(again).formToken, session.shown.formToken)
    assert.ok(Date.parse(shownIn(again).expiresAt) > Date.parse(session.shown.expiresAt))
    assert.equal(shownIn(again).endsAt, session.shown.endsAt)
    const [renewed = ''] = setCookieOf(again).split(';')
    assert.notEqual(renewed, session.cookie)
    assert.equal((await ask('GET', '/v1/devices', { cookie: renewed })).status, 200)
  })

  test('has the scopes and the bounds of its user', async () => {
    const viewer = await enter('viewer')
    assert.deepEqual(codeOf(await ask('GET', '/api/v1/pcap/single?StreamName=east-first', viewer.reading)), [
      403,
      'insufficient-scope',
    ])
    assert.equal((await ask('GET', '/v1/audit', (await enter('full')).reading)).status, 200)
    const bounded = await enter('easterner')
    const { devices } = (await ask('GET', '/v1/devices', bounded.reading)).json() as {
      devices: { name: string }[]
    }
    assert.deepEqual(
      devices.map(({ name }) => name),
      ['east'],
    )
    assert.deepEqual(bounded.shown.bounds.devices, ['east'])
  })

  for (const [method, path] of [
    ['POST', '/v1/tokens'],
    ['DELETE', '/v1/session'],
    ['POST', `/v1/tickets?For=${encodeURIComponent(`/api/v1/pcap/timerange?${RANGE}`)}`],
    ['POST', '/sysmaster/capture_start?StreamName=x'],
    ['GET', '/sysmaster/capture_stop'],
    ['GET', '/devices/east/pcap/del?StreamName=nothing'],
    ['GET', '/devices/east/some/other/path'],
    ['GET', `/api/v1/pcap/timerange?${RANGE}&Queue=job`],
  ] as const) {
    test(`changes nothing without its form token: ${method} ${path}`, async () => {
      const { cookie, shown } = await enter('admin')
      for (const headers of [
        { cookie },
        { cookie, 'x-capfleet-form': '' },
        { cookie, 'x-capfleet-form': `${shown.formToken}x` },
        { cookie, 'x-capfleet-form': (await enter('admin')).shown.formToken },
        { cookie, 'x-capfleet-form': shown.formToken, origin: 'https://elsewhere.example' },
        { cookie, 'x-capfleet-form': shown.formToken, 'sec-fetch-site': 'same-site' },
      ])
        assert.deepEqual(
          codeOf(await ask(method, path, headers)),
          [403, 'cross-site'],
          JSON.stringify(headers),
        )
      assert.equal((await ask('GET', '/v1/session', { cookie })).status, 200, 'it is still there')
    })
  }

  test('makes tokens as its password would, and tickets that end with it', async () => {
    const session = await enter('user')
    const made = await ask('POST', '/v1/tokens?Lifetime=30d', session.changing)
    assert.equal(made.status, 201, made.body.toString())
    const { id, token, parentId } = made.json() as { id: string; token: string; parentId: string | null }
    assert.equal(parentId, null)
    const target = `/api/v1/pcap/timerange?${RANGE}`
    const order = () => ask('POST', `/v1/tickets?For=${encodeURIComponent(target)}`, session.changing)
    const [one, two] = [(await order()).json(), (await order()).json()]
    assert.equal((await ask('GET', String(one.url), {})).status, 200)
    const { tokens } = (await ask('GET', '/v1/tokens', session.reading)).json() as {
      tokens: { id: string; kind: string }[]
    }
    assert.equal(tokens.find((listed) => listed.id === id)?.kind, 'token')
    assert.ok(tokens.some(({ kind }) => kind === 'session'))
    assert.equal((await ask('DELETE', '/v1/session', session.changing)).status, 200)
    assert.equal((await ask('GET', String(two.url), {})).status, 401)
    assert.equal((await ask('GET', '/v1/devices', { authorization: `Bearer ${token}` })).status, 200)
  })

  test('ends when its user signs out, with its cookie and all before it', async () => {
    const session = await enter('user', '?Path=/a/')
    const renewed = setCookieOf(await ask('GET', '/v1/session', session.reading)).split(';')[0] ?? ''
    const ended = await ask('DELETE', '/v1/session', session.changing)
    assert.deepEqual([ended.status, ended.json()], [200, { ended: true }])
    assert.match(setCookieOf(ended), /^capfleet-session=; Path=\/a\/; .*Max-Age=0$/)
    for (const cookie of [session.cookie, renewed])
      assert.deepEqual(codeOf(await ask('GET', '/v1/devices', { cookie })), [401, 'unauthenticated'])
    assert.equal((await enter('user')).shown.user, 'user')
  })

  test('is listed, and revoked, as a token is', async () => {
    const session = await enter('full')
    const { tokens } = (await ask('GET', '/v1/tokens', fleet.gateway.as.admin)).json() as {
      tokens: { id: string; kind: string; user: string }[]
    }
    const own = tokens.find(({ id }) => session.place === `/v1/tokens/${id}`)
    assert.deepEqual([own?.kind, own?.user], ['session', 'full'])
    assert.equal((await ask('DELETE', `/v1/tokens/${own?.id}`, fleet.gateway.as.admin)).status, 200)
    assert.deepEqual(codeOf(await ask('GET', '/v1/session', session.reading)), [401, 'unauthenticated'])
  })

  test('is no bearer token, and a bearer token is no session', async () => {
    const { cookie } = await enter('full')
    const token = cookie.slice('capfleet-session='.length)
    assert.deepEqual(codeOf(await ask('GET', '/v1/devices', { authorization: `Bearer ${token}` })), [
      401,
      'unauthenticated',
    ])
    const { token: bearer } = (await ask('POST', '/v1/tokens', fleet.gateway.as.full)).json()
    assert.deepEqual(codeOf(await ask('GET', '/v1/devices', { cookie: `capfleet-session=${bearer}` })), [
      401,
      'unauthenticated',
    ])
    for (const forged of ['', 'x', 'a.b.c', `${token}x`, `${token.slice(0, -4)}AAAA`])
      assert.equal((await ask('GET', '/v1/devices', { cookie: `capfleet-session=${forged}` })).status, 401)
  })

  test('begins by credentials alone', async () => {
    const { reading, changing } = await enter('user')
    assert.deepEqual(codeOf(await ask('POST', '/v1/session', changing)), [401, 'unauthenticated'])
    assert.deepEqual(codeOf(await ask('POST', '/v1/session', reading)), [403, 'cross-site'])
    for (const query of ['Path=x', 'Path=/;Domain=x', 'Path=/%0d%0aX:+y', 'path=/a/'])
      assert.deepEqual(codeOf(await ask('POST', `/v1/session?${query}`, fleet.gateway.as.user)), [
        400,
        'bad-parameter',
      ])
    const foreign = { ...fleet.gateway.as.user, origin: 'https://elsewhere.example' }
    assert.deepEqual(codeOf(await ask('POST', '/v1/session', foreign)), [403, 'cross-site'])
  })

  test('a script gets its identity without a session', async () => {
    const answer = await ask('GET', '/v1/session', fleet.gateway.as.viewer)
    const { user, credential, origin, formToken, expiresAt } = shownIn(answer)
    assert.deepEqual(
      [user, credential, origin, formToken, expiresAt],
      ['viewer', 'password', 'password', null, null],
    )
    assert.equal(answer.headers['set-cookie'], undefined)
    assert.deepEqual((await ask('DELETE', '/v1/session', fleet.gateway.as.viewer)).json(), { ended: false })
  })

  test('a wrong password goes through the gate, and opens no window of the browser', async () => {
    const wrong = { authorization: `Basic ${btoa('nobody:wrong')}`, 'x-capfleet-form': '-' }
    const answers: HttpAnswer[] = []
    for (let tries = 0; tries < 6; tries++) answers.push(await ask('POST', '/v1/session', wrong))
    assert.deepEqual(codeOf(answers[0] as HttpAnswer), [401, 'unauthenticated'])
    assert.equal(answers[0]?.headers['www-authenticate'], 'Bearer realm="capfleet"')
    assert.deepEqual(codeOf(answers.at(-1) as HttpAnswer), [429, 'too-many-logins'])
    assert.match(String(answers.at(-1)?.headers['retry-after']), /^\d+$/)
    for (const headers of [{ 'sec-fetch-dest': 'empty' }, { cookie: 'capfleet-session=old' }] as Headers[])
      assert.doesNotMatch(
        String((await ask('GET', '/v1/devices', headers)).headers['www-authenticate']),
        /Basic/,
      )
    assert.match(String((await ask('GET', '/v1/devices', {})).headers['www-authenticate']), /^Basic/)
  })

  test('is nothing to an appliance', async () => {
    const { reading } = await enter('admin')
    const answer = await httpGet(`${fleet.appliances[0]?.url}/stream/list`, { headers: reading })
    assert.equal(answer.status, 401)
    assert.match(String(answer.headers['www-authenticate']), /^Basic/)
  })

  test('is in the audit by its id, and in no log by its text', async () => {
    const session = await enter('full')
    const token = session.cookie.slice('capfleet-session='.length)
    await ask('GET', `/api/v1/pcap/timerange?${RANGE}`, session.reading)
    const lines: AuditEntry[] = []
    const isThere = async () => {
      lines.splice(0, lines.length, ...(await auditEntries(join(fleet.gateway.config.home, 'audit'))))
      return lines.some(
        ({ event, credential }) => event === 'download.end' && /^session:/.test(String(credential)),
      )
    }
    await eventually(isThere, { message: 'the line of the download' })
    assert.ok(lines.some(({ event }) => event === 'session.change.begin'))
    for (const text of [JSON.stringify(lines), JSON.stringify(fleet.gateway.logged)]) {
      refuseSecretsIn('the lines of a session', text)
      assert.ok(!text.includes(token) && !text.includes(session.shown.formToken))
    }
  })
})

describe('a session elsewhere', () => {
  test('passes no cookie on to devices', async () => {
    await using redis = await TempRedis.create()
    const [device] = await startFakeFleet(10, ['d0'])
    assert.ok(device !== undefined)
    await using _device = device
    await using gateway = await startTempGateway([device], redis.url)
    const { reading, changing } = await signIn(gateway.url, gateway.as.admin)
    device.requests.length = 0
    const paths = ['/api/v1/system/port_stats', '/stream/list', '/sysmaster/capture_stop', '/some/other/path']
    for (const path of paths) await httpGet(`${gateway.url}/devices/d0${path}`, { headers: changing })
    await httpGet(`${gateway.url}/api/v1/system/io_stats`, { headers: reading })
    const asked = device.requests.map(({ url }) => url)
    for (const path of [...paths, '/api/v1/system/io_stats']) assert.ok(asked.includes(path), path)
    for (const { headers } of device.requests)
      assert.deepEqual([headers.cookie, headers['x-capfleet-form']], [undefined, undefined])
  })

  test('is cut on all gateways when it ends', async () => {
    await using redis = await TempRedis.create()
    const fleet = await startFakeFleet(20_000)
    await using owned = new AsyncDisposableStack()
    for (const device of fleet) owned.use(device)
    const one = owned.use(await startTempGateway(fleet, redis.url))
    const keys = join(one.config.home, 'token-keys')
    const { users } = one.config.auth
    const two = owned.use(await startTempGateway(fleet, redis.url, { auth: { users, tokens: { keys } } }))
    const session = await signIn(one.url, one.as.user)
    for (const device of fleet) device.behaviour = { chunkBytes: 1_000, pauseMs: 20 }
    using download = await httpOpen(`${two.url}/api/v1/pcap/timerange?TSBegin=1&TSEnd=now`, {
      headers: session.reading,
    })
    assert.equal(download.response.statusCode, 200)
    let isCut = false
    download.response.on('error', () => {
      isCut = true
    })
    download.response.resume()
    assert.equal(
      (await httpGet(`${one.url}/v1/session`, { method: 'DELETE', headers: session.changing })).status,
      200,
    )
    await eventually(() => isCut, { message: 'the download at the other gateway is cut' })
    assert.equal((await httpGet(`${two.url}/v1/devices`, { headers: session.reading })).status, 401)
  })

  test('of a token has no more than it, and goes with it', async () => {
    await using oidc = await OidcServer.start('ES256', 'one')
    await using redis = await TempRedis.create()
    const [device] = await startFakeFleet(10, ['d0'])
    assert.ok(device !== undefined)
    await using _device = device
    const roles = [{ group: 'operators', role: 'full' }]
    const provider = {
      name: 'corp',
      issuer: oidc.issuer,
      audience: oidc.audience,
      jwks: { url: oidc.keysUrl },
      roles,
    }
    await using gateway = await startTempGateway([device], redis.url, { auth: { providers: [provider] } })
    oidc.groups = ['operators']
    const provided = await signIn(gateway.url, { authorization: `Bearer ${await oidc.token()}` })
    const { user, credential, origin } = provided.shown
    assert.deepEqual([user, credential, origin], ['corp:collector', 'session', 'token'])
    assert.ok(
      Date.parse(provided.shown.endsAt) < Date.now() + 43_100_000,
      'not beyond the token of the provider',
    )
    const made = await httpGet(
      `${gateway.url}/v1/tokens?Scopes=device:read,queue:read&Lifetime=1h&Devices=d0`,
      {
        method: 'POST',
        headers: gateway.as.full,
      },
    )
    const { id, token, expiresAt } = made.json() as { id: string; token: string; expiresAt: string }
    const session = await signIn(gateway.url, { authorization: `Bearer ${token}` })
    assert.deepEqual(session.shown.scopes, ['device:read', 'queue:read'])
    assert.deepEqual(session.shown.bounds.devices, ['d0'])
    assert.equal(session.shown.endsAt, expiresAt)
    const child = await httpGet(`${gateway.url}/v1/tokens`, { method: 'POST', headers: session.changing })
    assert.equal(child.json().parentId, id)
    await httpGet(`${gateway.url}/v1/tokens/${id}`, { method: 'DELETE', headers: gateway.as.full })
    assert.equal((await httpGet(`${gateway.url}/v1/devices`, { headers: session.reading })).status, 401)
  })
})
