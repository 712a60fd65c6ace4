// Devices that do not know a parameter: what callers get from them, alone and in a merge.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { FakeBehaviour, FakeDevice } from '../../../../support/devices/fake-device.ts'
import { FLEET_BEGIN_NS, startFakeFleet } from '../../../../support/devices/fake-fleet.ts'
import { type HttpAnswer, httpGet } from '../../../../support/http-get.ts'
import { startTempGateway, type TempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'

const RANGE = `TSBegin=${FLEET_BEGIN_NS}&TSEnd=${FLEET_BEGIN_NS + 1_000_000_000n}&TSUnit=nanos`
/** The answer of our appliance to an invalid filter. */
const FILTERS: FakeBehaviour = {
  estimateProblem: { status: 400, body: { code: 'bad-bpf', detail: 'syntax error' } },
}

describe('a device that does not know a parameter', () => {
  const parts = new AsyncDisposableStack()
  let fleet: FakeDevice[] = []
  let gateway: TempGateway
  before(async () => {
    const redis = parts.use(await TempRedis.create())
    fleet = await startFakeFleet(5)
    for (const device of fleet) parts.use(device)
    const bounded = [{ name: 'dns', role: 'user', filter: 'udp port 53' }] as const
    gateway = parts.use(await startTempGateway(fleet, redis.url, {}, bounded))
  })
  after(() => parts.disposeAsync())
  beforeEach(() => {
    for (const device of fleet) device.behaviour = {}
  })

  const ask = (path: string, user = 'user'): Promise<HttpAnswer> =>
    httpGet(gateway.url + path, { headers: gateway.basic(user) })
  const PATHS = [
    ['alone', `/devices/d0/api/v1/pcap/timerange?${RANGE}`],
    ['by its old path', `/devices/d0/pcap/timerange?${RANGE.replace('TSUnit=nanos', 'TSMode=nsec')}`],
    ['in a merge', `/api/v1/pcap/timerange?${RANGE}`],
  ] as const

  for (const [how, path] of PATHS) {
    test(`and says so fails the download before its first byte: ${how}`, async () => {
      const [device] = fleet as [FakeDevice]
      device.behaviour = { headers: { 'Capfleet-Ignored': 'FilterBPF, Odd' } }
      const answer = await ask(`${path}&FilterBPF=udp`)
      assert.deepEqual([answer.status, answer.json().code], [502, 'device-protocol'])
      assert.match(String(answer.json().detail), /device d0 does not support FilterBPF/)
      device.behaviour = { headers: { 'Capfleet-Ignored': 'Odd' } }
      assert.equal((await ask(`${path}&FilterBPF=udp`)).status, 200, 'it was not asked for Odd')
    })

    test(`gives nothing to callers with a filter until it has shown that it filters: ${how}`, async () => {
      for (const one of fleet) one.behaviour = FILTERS
      for (const { requests } of fleet) requests.length = 0
      assert.equal((await ask(path, 'dns')).status, 200)
      for (const { requests } of fleet)
        for (const { url, headers } of requests.filter((asked) => asked.url.includes('/pcap/timerange')))
          assert.equal(headers['capfleet-forced-filter'], 'true', url)
      const [device] = fleet as [FakeDevice]
      const unknown = 'it does not have /api/v1/pcap/estimate'
      for (const [behaviour, why] of [
        [{}, unknown],
        [{ estimateProblem: { status: 404, body: { code: 'not-found', detail: 'no such path' } } }, unknown],
        [{ estimateProblem: { status: 404, body: {} } }, unknown],
        [
          { estimateProblem: { status: 400, body: { code: 'bad-parameter', detail: 'FilterBPF' } } },
          'it did not',
        ],
      ] as const) {
        device.behaviour = behaviour
        device.requests.length = 0
        const refused = await ask(path, 'dns')
        assert.deepEqual([refused.status, refused.json().code], [502, 'device-protocol'])
        const { detail } = refused.json()
        assert.match(String(detail), /device d0 has not shown that it filters packets/)
        assert.ok(String(detail).includes(`(${why}`), String(detail))
        assert.ok(device.requests.every(({ url }) => url.startsWith('/api/v1/pcap/estimate?')))
      }
      assert.equal((await ask(path, 'user')).status, 200, 'others have it')
    })
  }
})
