// /v1/estimate over simulated devices.
import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import type { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { FLEET_RANGE } from '../../../../support/devices/fake-fleet.ts'
import { httpGet } from '../../../../support/http-get.ts'
import { gatewayWorld } from '../../../../support/processes/gateway-world.ts'
import { startTempGateway } from '../../../../support/processes/temp-gateway.ts'

const ESTIMATE = `/v1/estimate?${FLEET_RANGE}`

describe('the estimate of the fleet', () => {
  const world = gatewayWorld(1)
  const { fleet } = world
  beforeEach(() => {
    for (const [index, device] of fleet.entries()) {
      device.behaviour = { body: estimateBody({ Packets: `9${index}`, Bytes: '9007199254740993' }) }
    }
  })

  function estimateBody(members: Readonly<Record<string, unknown>>): Buffer {
    return Buffer.from(JSON.stringify({ Kind: 'timerange', Exact: true, LinkType: 1, ...members }))
  }
  const get = (path: string) => httpGet(world.gateway.url + path, { headers: world.gateway.as.user })
  const device = (index: number): FakeDevice => fleet[index] as FakeDevice

  test('adds up what the selected devices report, with one file header, and takes no stream', async () => {
    const answer = (await get(`${ESTIMATE}&FilterBPF=tcp&Odd=1&Device=d0,d2`)).json()
    assert.deepEqual(answer, {
      kind: 'timerange',
      packets: '182',
      bytes: String(2n * 9_007_199_254_740_993n - 24n),
      exact: true,
      ignored: ['Odd'],
      devices: ['d0', 'd2'].map((name, index) => ({
        device: name,
        packets: `9${2 * index}`,
        bytes: '9007199254740993',
        exact: true,
        linkType: 1,
      })),
    })
    const asked = device(0).requests.map(({ url }) => url)
    assert.ok(asked.includes(`/api/v1/pcap/estimate?${FLEET_RANGE}&TSUnit=nanos&FilterBPF=tcp`))
    assert.equal(device(0).mostReaders, 0)
  })

  test('is null, not zero, if no device reports one', async () => {
    for (const one of fleet) one.behaviour = { body: Buffer.from('{}') }
    const { status, json } = await get(ESTIMATE)
    const { packets, bytes, exact } = json()
    assert.deepEqual([status, packets, bytes, exact], [200, null, null, false])
  })

  test('names devices that do not answer, and is not exact then', async () => {
    // Longer than a healthy device ever takes.
    await using impatient = await startTempGateway(fleet, world.redis.url, {
      control: { probeTimeoutMs: 5_000 },
    })
    device(0).behaviour = { silent: true }
    device(1).behaviour = { body: Buffer.from('{"Packets":"x"}') }
    const { headers, json } = await httpGet(impatient.url + ESTIMATE, { headers: impatient.as.user })
    const { exact, packets, devices } = json() as {
      exact: boolean
      packets: string
      devices: { device: string; error?: { code: string } }[]
    }
    assert.deepEqual([exact, packets], [false, '92'])
    assert.deepEqual(
      devices.map((one) => one.error?.code),
      ['device-timeout', 'device-protocol', undefined],
    )
    assert.equal(headers['capfleet-unreachable'], 'd0, d1')
  })

  test('a device that sends something other than counts is named, however deep or long it is', async () => {
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
    for (const body of [
      'null',
      `{"Packets":"1","Bytes":"24","LinkType":${deep}}`,
      `{"Packets":"1","Bytes":"24","pad":"${'x'.repeat(20_000)}"}`,
    ]) {
      device(0).behaviour = { body: Buffer.from(body) }
      const answer = await get(ESTIMATE)
      assert.deepEqual([answer.status, answer.headers['capfleet-unreachable']], [200, 'd0'])
    }
    device(0).behaviour = { body: Buffer.from('{"Packets":"1","Bytes":"24","LinkType":{"a":[[1]]}}') }
    const { devices } = (await get(ESTIMATE)).json() as { devices: { linkType: unknown }[] }
    assert.equal(devices[0]?.linkType, null)
  })

  test("is refused for the caller's own mistakes", async () => {
    assert.equal((await get('/v1/estimate?TSBegin=x&TSEnd=1')).status, 400)
    assert.equal((await get(`${ESTIMATE}&Device=d9`)).status, 404)
    assert.equal((await get('/v1/estimate?StreamName=nothing')).status, 502, 'the lists are no lists')
  })
})
