// A made-up secret in every slot of both configurations and in everything that clients send, then successes and
// failures of every kind with the real programs. Afterwards every place that could hold a secret is searched.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { type ChildProgram, startChildProgram } from '../../../src/demo/child-program.ts'
import { putUser } from '../../../src/shared/auth/edit-users-file.ts'
import { TempAuthority } from '../../support/access/temp-authority.ts'
import { Canaries } from '../../support/canaries.ts'
import { FaultProxy } from '../../support/devices/fault-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import { type HttpAnswer, type HttpGetOptions, httpGet } from '../../support/http-get.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { runningNaming } from '../../support/processes/demo-process.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { type TempFolder, tempFolder } from '../../support/temp-folder.ts'

const BEGIN_NS = 1_790_000_000_000_000_000n
const RANGE = `TSBegin=${BEGIN_NS}&TSEnd=${BEGIN_NS + 60_000_000_000n}`
const TIMERANGE = `/api/v1/pcap/timerange?${RANGE}`
const STOP_MS = 10_000

describe('secrets', () => {
  const owned = new AsyncDisposableStack()
  const canaries = new Canaries()
  const answers: { readonly what: string; readonly answer: HttpAnswer }[] = []
  let folder: TempFolder
  let redis: TempRedis
  let admin: Redis
  let authority: TempAuthority
  let bucket: Refusing
  let appliance: ChildProgram
  let gateway: ChildProgram
  let worker: ChildProgram

  /** Files below secrets/ may contain secrets; files below work/ must not. */
  const path = (...names: string[]) => join(folder.path, ...names)
  const keep = async (name: string, text: string) => {
    await writeFile(path('secrets', name), `${text}\n`)
    return { file: path('secrets', name) }
  }
  const start = async (name: string, config: object) => {
    await writeFile(path('work', `${name}.yaml`), JSON.stringify(config))
    const args = [name, '--config', path('work', `${name}.yaml`)]
    const program = await startChildProgram(name, args, {
      logPath: path('work', `${name}.log`),
      appends: false,
    })
    owned.defer(() => program.stop(STOP_MS))
    return program
  }
  const logOf = (name: string) => readFile(path('work', `${name}.log`), 'utf8')
  const ask = async (program: ChildProgram, target: string, options: HttpGetOptions = {}) => {
    const tls = { ca: await readFile(authority.ca) }
    const answer = await httpGet(`${program.address}${target}`, { tls, ...options })
    answers.push({ what: `${program.name} ${target}`, answer })
    return answer
  }

  before(async () => {
    folder = owned.use(await tempFolder())
    redis = owned.use(await TempRedis.create())
    authority = owned.use(await TempAuthority.create())
    for (const name of ['secrets', 'work', 'token-keys']) await mkdir(path(name))
    const tls = await authority.issue('server')
    canaries.add('the key of listen.tls', (await readFile(tls.key, 'utf8')).split('\n')[1] ?? '')
    const towards = await authority.issue('towards')
    canaries.add('devices[].key', (await readFile(towards.key, 'utf8')).split('\n')[1] ?? '')
    const common = { timeZone: 'UTC', logLevel: 'debug' }
    const listen = { port: 0, tls }

    const devicePassword = canaries.make('devices[].password, auth.users of the device')
    await putUser(path('secrets', 'device-users.yaml'), { name: 'gateway', role: 'full' }, devicePassword)
    const store = path('work', 'store')
    const device = {
      ...common,
      listen,
      store,
      auth: { users: path('secrets', 'device-users.yaml'), anonymousMetrics: true },
    }
    await start('recorder', device)
    await writeFile(path('capture.pcap'), makePcap([makePacket(BEGIN_NS, 'packet', 60)]))
    await new RecorderClient(store).importCapture({ name: 'capture', files: [path('capture.pcap')] })
    appliance = await start('appliance', device)

    const userPassword = canaries.make('a right password')
    const users = path('secrets', 'users.yaml')
    await putUser(users, { name: 'ann', role: 'full' }, userPassword)
    const signing = [1, 2].map((half) => canaries.make(`half ${half} of a key in auth.tokens.keys`))
    await writeFile(path('token-keys', 'shared.secret'), signing.join(''))
    const redisPassword = canaries.make('redis.password')
    admin = new Redis(redis.url)
    owned.defer(() => admin.disconnect())
    await admin.config('SET', 'requirepass', redisPassword)
    bucket = await Refusing.start({ HEAD: 200, PUT: 403, POST: 403, GET: 403, DELETE: 403 })
    owned.use(bucket)
    const refusing = owned.use(await Refusing.start({ GET: 401, HEAD: 401 }))
    const password = await keep('password', devicePassword)
    // A device can have only one name per URL, so this one has another URL.
    const way = owned.use(
      await FaultProxy.start({ host: '127.0.0.1', port: Number(new URL(appliance.address).port) }),
    )
    const gatewayConfig = {
      ...common,
      listen,
      home: path('work', 'home'),
      redis: { url: redis.url, password: await keep('redis', redisPassword) },
      auth: { users, anonymousMetrics: true, tokens: { keys: path('token-keys') } },
      health: { intervalS: 0.5 },
      devices: [
        { name: 'up', url: appliance.address, ca: authority.ca, ...towards, user: 'gateway', password },
        { name: 'distrusted', url: `https://127.0.0.1:${way.port}`, user: 'gateway', password },
        { name: 'refusing', url: refusing.url, token: await keep('token', canaries.make('devices[].token')) },
        { name: 'down', url: 'http://127.0.0.1:1', user: 'x', password },
      ],
      exports: {
        spool: path('work', 'spool'),
        targets: [
          {
            name: 'bucket',
            type: 's3',
            bucket: 'bucket',
            endpoint: bucket.url,
            region: 'us-east-1',
            accessKeyId: 'key',
            secretAccessKey: await keep('s3', canaries.make('exports.targets[].secretAccessKey')),
          },
        ],
        worker: { listen: { port: 0 } },
      },
    }
    gateway = await start('gateway', gatewayConfig)
    worker = await start('worker', gatewayConfig)

    await succeed(userPassword, devicePassword)
    await fail(userPassword)
    await loseRedis()
  })
  after(() => owned.disposeAsync())

  async function succeed(userPassword: string, devicePassword: string): Promise<void> {
    const user = `ann:${userPassword}`
    for (const target of [`/devices/up${TIMERANGE}`, `${TIMERANGE}&Device=up`, '/v1/queue', '/stream/list'])
      assert.equal((await ask(gateway, target, { user })).status, 200, target)
    assert.equal((await ask(appliance, TIMERANGE, { user: `gateway:${devicePassword}` })).status, 200)
    await useTokens(user)
    const order = { user, method: 'POST' }
    const ordered = await ask(
      gateway,
      `/v1/exports?${RANGE}&Device=up&Ticket=${canaries.make('an order')}`,
      order,
    )
    assert.equal(ordered.status, 202)
    await eventually(() => bucket.seen.some((method) => method === 'PUT' || method === 'POST'), {
      message: 'the bucket has refused the export',
    })
    await ask(gateway, `/v1/exports/${ordered.json().id}`, { user })
  }

  /** The answers that issue secrets are excluded: that is their purpose. */
  async function useTokens(user: string): Promise<void> {
    const tls = { ca: await readFile(authority.ca) }
    const given = async (target: string) =>
      (await httpGet(`${gateway.address}${target}`, { tls, user, method: 'POST' })).json()
    const { id, token } = await given('/v1/tokens?Note=canary')
    canaries.add('a token', String(token))
    canaries.add('the signature of a token', String(token).split('.')[2] ?? '')
    const bearer = { authorization: `Bearer ${token}` }
    assert.equal((await ask(gateway, `${TIMERANGE}&Device=up`, { headers: bearer })).status, 200)
    const { url } = await given(`/v1/tickets?For=${encodeURIComponent(`${TIMERANGE}&Device=up`)}`)
    canaries.add('a ticket', /Ticket=(.+)$/.exec(String(url))?.[1] ?? '')
    for (const status of [200, 403]) assert.equal((await ask(gateway, String(url))).status, status)
    const revoked = await ask(gateway, `/v1/tokens/${id}`, { user, method: 'DELETE' })
    assert.equal(revoked.status, 200)
    assert.equal((await ask(gateway, '/v1/devices', { headers: bearer })).status, 401)
  }

  async function fail(userPassword: string): Promise<void> {
    const user = `ann:${userPassword}`
    for (const device of ['distrusted', 'refusing', 'down']) {
      for (const target of [TIMERANGE, '/api/v1/system/status', '/unlisted'])
        assert.equal(
          (await ask(gateway, `/devices/${device}${target}`, { user })).status,
          502,
          device + target,
        )
    }
    await ask(gateway, TIMERANGE, { user })
    for (const program of [gateway, appliance]) {
      const wrong = canaries.make(`a wrong password at the ${program.name}`)
      assert.equal((await ask(program, TIMERANGE, { user: `ann:${wrong}` })).status, 401)
      const authorization = `Bearer ${canaries.make(`a bearer token at the ${program.name}`)}`
      assert.equal((await ask(program, TIMERANGE, { headers: { authorization } })).status, 401)
      const ticket = canaries.make(`a ticket at the ${program.name}`)
      for (const target of [
        `${TIMERANGE}&Ticket=${ticket}`,
        `/nowhere?ticket=${ticket}`,
        `/livez?token=${ticket}`,
      ])
        await ask(program, target)
      await ask(program, `${TIMERANGE}&Ticket=${ticket}&FilterBPF=)(`, { user })
      await ask(program, `/api/v1/pcap/timerange?TSBegin=x&password=${ticket}`, { user })
    }
  }

  /** Redis now requires another password, and closes all connections. */
  async function loseRedis(): Promise<void> {
    await admin.config('SET', 'requirepass', canaries.make('the next password of Redis'))
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    for (const name of ['gateway', 'worker']) {
      await eventually(async () => /WRONGPASS|NOAUTH/.test(await logOf(name)), {
        message: `${name} could not log in to Redis`,
      })
    }
  }

  test('are found where they are: the search works', async () => {
    const found = await Promise.all(
      (await readdir(path('secrets'))).map(async (name) =>
        canaries.in(await readFile(path('secrets', name))),
      ),
    )
    for (const slot of ['devices[].token', 'redis.password', 'exports.targets[].secretAccessKey'])
      assert.ok(found.flat().includes(slot), slot)
    const key = await readFile(path('token-keys', 'shared.secret'))
    assert.equal(canaries.in(key).length, 2)
    assert.ok(canaries.slots.length >= 17)
  })

  test('are in no log, in no audit, and in no file of a store, a spool or a home', async () => {
    for (const name of ['gateway', 'worker', 'appliance', 'recorder'])
      assert.match(await logOf(name), /"level":(20|30)/, `${name} has logged`)
    assert.ok((await canaries.refuseBelow(path('work', 'home', 'audit'))) > 1_000)
    assert.ok((await canaries.refuseBelow(path('work'))) > 10_000)
  })

  test('are in nothing that was ever stored in Redis', async () => {
    assert.ok((await canaries.refuseBelow(join(dirname(redis.url), 'appendonlydir'))) > 1_000)
  })

  test('are in no metric and no answer', async () => {
    for (const program of [gateway, worker, appliance]) {
      const { status, body } = await ask(program, '/metrics')
      assert.equal(status, 200)
      assert.match(body.toString(), /capfleet_/)
    }
    for (const { what, answer } of answers) {
      canaries.refuseIn(`the body of ${what}`, answer.body)
      canaries.refuseIn(`the head of ${what}`, JSON.stringify([answer.headers, answer.trailers]))
    }
    assert.ok(answers.filter(({ answer }) => answer.status >= 400).length >= 15)
  })

  test('are on no command line', async () => {
    const running = await runningNaming(folder.path)
    assert.ok(running.length >= 4)
    for (const { commandLine } of running) canaries.refuseIn('a command line', commandLine)
  })
})

/**
 * A server that rejects requests and repeats the credentials that it was sent, in the form of an Authorization header.
 */
class Refusing implements AsyncDisposable {
  /** HTTP methods. */
  readonly seen: string[] = []
  readonly url: string
  readonly #server: Server

  private constructor(server: Server, url: string) {
    this.#server = server
    this.url = url
  }

  static async start(statuses: Readonly<Record<string, number>>): Promise<Refusing> {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const refusing = new Refusing(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    server.on('request', (req: IncomingMessage, res: ServerResponse) => {
      const method = req.method ?? ''
      refusing.seen.push(method)
      req.resume()
      res.writeHead(statuses[method] ?? 404, { 'Content-Type': 'application/problem+json' })
      res.end(JSON.stringify({ code: 'unauthenticated', detail: `not for ${req.headers.authorization}` }))
    })
    return refusing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
