// Callers without credentials get only what the devices return to such callers, through a gateway with anonymous reads,
// over real devices.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type HttpAnswer, httpGet, httpOpen } from '../../support/http-get.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'

const READS = ['time_current', 'version', 'port_stats', 'io_stats', 'status'].map(
  (name) => `/api/v1/system/${name}`,
)
/** The filter of another user's download. */
const SECRETS = ['greater 10', 'private-capture']

describe('system reads without credentials', () => {
  const owner = new AsyncDisposableStack()
  let open: TempAppliance
  let closed: TempAppliance
  let gateway: TempGateway
  let redis: TempRedis

  before(async () => {
    redis = owner.use(await TempRedis.create())
    open = owner.use(await startTempAppliance())
    const users = join(open.folder, 'users.yaml')
    closed = owner.use(await startTempAppliance({ config: { auth: { users, anonymousSystem: false } } }))
    const capture = join(open.folder, 'big.pcap')
    await writeBigCapture(capture)
    await open.importFiles('private-capture', capture)
    gateway = await gatewayOver({ auth: { anonymousSystem: true } })
  })
  after(() => owner.disposeAsync())

  async function gatewayOver(settings: Parameters<typeof startTempGateway>[2]): Promise<TempGateway> {
    process.env.TEST_APPLIANCE_PASSWORD = open.credentials('full').split(':')[1]
    const devices = [open, closed].map(({ url }, index) => ({
      name: ['open', 'closed'][index],
      url,
      user: 'full',
      password: { env: 'TEST_APPLIANCE_PASSWORD' },
    }))
    return owner.use(await startTempGateway([], redis.url, { devices, ...settings }))
  }

  const ask = (path: string, headers: Record<string, string> = {}): Promise<HttpAnswer> =>
    httpGet(gateway.url + path, { headers })

  test('are answered below a device and at the root, with what the device discloses to everyone', async () => {
    using running = await httpOpen(
      `${gateway.url}/devices/open/api/v1/pcap/single?StreamName=private-capture&FilterBPF=greater+10`,
      { headers: gateway.as.user },
    )
    assert.equal(running.response.statusCode, 200)
    const told = (await ask('/devices/open/api/v1/system/status', gateway.as.full)).body.toString()
    for (const secret of SECRETS) assert.ok(told.includes(secret), `who sees the audit is told of ${secret}`)
    for (const path of READS) {
      const below = await ask(`/devices/open${path}`)
      const root = await ask(`${path}?Device=open`)
      assert.deepEqual([below.status, root.status], [200, 200], path)
      const own = await httpGet(open.url + path)
      if (below.headers['content-type']?.includes('json'))
        assert.deepEqual(Object.keys(below.json()), Object.keys(own.json()), path)
      for (const { body } of [below, root]) {
        for (const secret of SECRETS) assert.ok(!body.toString().includes(secret), `${path}: ${secret}`)
      }
    }
    const [entry] = (await ask('/api/v1/system/status?Device=open')).json().Devices as {
      Body: { cat: Record<string, unknown> }
    }[]
    assert.deepEqual([entry?.Body.cat.cat_EnableCnt, entry?.Body.cat.cat_0_CmdLine], [1, ''])
  })

  test('are 401 for a device that answers users only, and say so', async () => {
    for (const path of ['/devices/closed/api/v1/system/version', '/api/v1/system/version?Device=closed']) {
      const answer = await ask(path)
      assert.deepEqual([answer.status, answer.json().code], [401, 'unauthenticated'], path)
      assert.match(String(answer.json().detail), /device closed answers this only for authenticated users/)
      assert.match(String(answer.headers['www-authenticate']), /^Basic/)
      assert.equal((await ask(path, gateway.as.viewer)).status, 200, 'a viewer is asked for by the gateway')
    }
    const both = await ask('/api/v1/system/version')
    assert.equal(both.status, 207)
    const statuses = (both.json().Devices as { Device: string; Status: number }[]).map(
      ({ Device, Status }) => `${Device} ${Status}`,
    )
    assert.deepEqual(statuses, ['open 200', 'closed 401'])
  })

  test('are all that is open: everything else requires a user', async () => {
    for (const path of [
      '/sysmaster/stats_summary',
      '/sysmaster/status',
      '/api/v1/capture/schedule',
      '/api/v1/system/events',
      '/api/v1/system/telemetry',
      '/stream/list',
    ]) {
      assert.equal((await ask(path)).status, 401, path)
      assert.equal((await ask(`/devices/open${path}`)).status, 401, path)
    }
    assert.equal((await ask('/api/v1/system/version', { authorization: 'Basic !' })).status, 207)
  })

  test('need a viewer by default, and the 401 names the setting', async () => {
    gateway = await gatewayOver({})
    for (const path of READS) {
      for (const asked of [path, `/devices/open${path}`]) {
        const answer = await ask(asked)
        assert.equal(answer.status, 401, asked)
        assert.match(String(answer.json().detail), /the setting auth\.anonymousSystem: true opens it/)
        assert.equal((await ask(asked, gateway.as.viewer)).status, 200, asked)
      }
    }
    assert.doesNotMatch(String((await ask('/stream/list')).json().detail), /anonymous/)
  })
})
