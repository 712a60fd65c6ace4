// Which paths of a device can be reached through the gateway, and by whom.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { httpGet } from '../../../../support/http-get.ts'
import { gatewayWorld } from '../../../../support/processes/gateway-world.ts'

const VENDOR_READ = '/api/v1/system/fans'

describe('the paths of a device', () => {
  const world = gatewayWorld(1, {
    control: { readablePaths: [VENDOR_READ, '/pcap/del', '/SYSMASTER/capture_stop'] },
  })
  const device = () => world.fleet[0] as FakeDevice
  const ask = (path: string, role: 'viewer' | 'user' | 'full', headers = {}, method = 'GET') =>
    httpGet(`${world.gateway.url}/devices/d0${path}`, {
      method,
      headers: { ...world.gateway.as[role], ...headers },
    })

  test('that the gateway does not know need the role full, and are refused to pages of other sites', async () => {
    device().answers.set('/x/reboot', { done: true })
    for (const role of ['viewer', 'user'] as const) {
      for (const method of ['GET', 'HEAD'])
        assert.equal((await ask('/x/reboot', role, {}, method)).status, 403)
    }
    const foreign = await ask('/x/reboot', 'full', { 'sec-fetch-site': 'cross-site' })
    assert.deepEqual([foreign.status, foreign.json().code], [403, 'cross-site'])
    assert.equal((await ask('/x/reboot', 'full', { 'sec-fetch-site': 'cross-site' }, 'HEAD')).status, 403)
    assert.deepEqual(device().requests, [])
    assert.deepEqual((await ask('/x/reboot', 'full')).json(), { done: true })
    assert.equal((await ask('/x/reboot', 'full', {}, 'HEAD')).status, 200)
    assert.deepEqual(
      device().requests.map(({ method, url }) => `${method} ${url}`),
      ['GET /x/reboot', 'HEAD /x/reboot'],
    )
  })

  test('that the API or the configuration calls readable are for viewers', async () => {
    for (const path of [VENDOR_READ, '/api/v1/system/events', '/api/v1/system/telemetry']) {
      device().answers.set(path, { path })
      assert.deepEqual((await ask(`${path}?a=1`, 'viewer', { 'sec-fetch-site': 'cross-site' })).json(), {
        path,
      })
    }
  })

  test('that change something stay changes, whatever the configuration calls readable', async () => {
    for (const path of ['/pcap/del', '/sysmaster/capture_stop'])
      assert.equal((await ask(path, 'viewer')).status, 403, path)
    assert.equal((await ask('/SYSMASTER/capture_stop', 'viewer')).status, 404)
    assert.deepEqual(device().requests, [])
  })
})
