import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { GatewayRoute } from '../../../../src/gateway/routes/gateway-parts.ts'
import type { RouteContext } from '../../../../src/gateway/routes/request/route-context.ts'
import { RouteTable } from '../../../../src/gateway/routes/route-table.ts'
import { ROUTES } from '../../../../src/gateway/routes/routes.ts'
import { createLog } from '../../../../src/shared/base/log.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { createHttpApp } from '../../../../src/shared/http/http-app.ts'
import { listen } from '../../../../src/shared/http/http-server.ts'
import { httpGet } from '../../../support/http-get.ts'

/** Answers with the row that was found and its parameters. */
async function serve(t: TestContext, routes: readonly GatewayRoute[]): Promise<string> {
  const app = createHttpApp({ log: createLog('test', 'silent'), metrics: new Metrics() })
  const table = new RouteTable(routes, async ({ method, path }, ctx) => {
    ctx.body = { row: `${method} ${path}`, params: ctx.params }
  })
  app.use((ctx: RouteContext, next) => table.dispatch(ctx, next))
  const server = await listen(app.callback(), { host: '127.0.0.1', port: 0 }, new Metrics())
  t.after(() => server.close(0))
  return server.url
}

test('every row of the gateway is found at its path, with its parameters', async (t) => {
  const url = await serve(t, ROUTES)
  for (const { method, path } of ROUTES) {
    const asked = path
      .replace(':device', 'nyc%2F1')
      .replace(':id', '7')
      .replace(':name', 'page.js')
      .replace(':build', '1a2b')
      .replace('{*path}', 'stream/other')
    const found = (await httpGet(url + asked, { method })).json()
    const params = {
      ...(path.includes(':device') ? { device: 'nyc/1' } : {}),
      ...(path.includes(':id') ? { id: '7' } : {}),
      ...(path.includes(':build') ? { build: '1a2b' } : {}),
      ...(path.includes(':name') ? { name: 'page.js' } : {}),
      ...(path.includes('{*path}') ? { path: 'stream/other' } : {}),
    }
    assert.deepEqual(found, { row: `${method} ${path}`, params }, asked)
  }
})

test('a path without a wildcard wins over one with it, for a device called anything', async (t) => {
  const url = await serve(t, ROUTES)
  for (const device of ['nyc1', ':device', '{*path}', 'constructor']) {
    const found = (await httpGet(`${url}/devices/${encodeURIComponent(device)}/stream/list?a=/x`)).json()
    assert.deepEqual(found, { row: 'GET /devices/:device/stream/list', params: { device } })
  }
})

test('a device may be called as the table spells it', async (t) => {
  const url = await serve(t, ROUTES)
  for (const path of ['/devices/:device/stream/list', '/v1/devices/:device', '/devices/:device/other']) {
    const { params } = (await httpGet(url + path)).json() as { params: Record<string, string> }
    assert.equal(params.device, ':device', path)
  }
})

test('what has no row is not found, and another method is refused', async (t) => {
  const url = await serve(t, ROUTES)
  const status = async (method: string, path: string) => (await httpGet(url + path, { method })).status
  const allow = async (method: string, path: string) => {
    const { status, headers } = await httpGet(url + path, { method })
    return [status, headers.allow, headers['content-type']]
  }
  for (const path of ['/assets', '/Livez', '/livez/', '/devices', '/devices/', '/devices/nyc1'])
    assert.equal(await status('GET', path), 404, path)
  for (const path of ['/livez', '/v1/queue', '/devices/nyc1/stream/list', '/devices/nyc1/other'])
    assert.deepEqual(await allow('POST', path), [405, 'HEAD, GET', 'application/problem+json'], path)
  assert.deepEqual(await allow('PUT', '/pcap/del'), [405, 'HEAD, GET, DELETE', 'application/problem+json'])
  assert.deepEqual(await allow('OPTIONS', '/livez'), [200, 'HEAD, GET', 'text/plain; charset=utf-8'])
  assert.equal(await status('HEAD', '/devices/nyc1/stream/list'), 200)
  assert.equal(await status('DELETE', '/devices/nyc1/pcap/del'), 200)
})
