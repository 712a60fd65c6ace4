// The configurations of the guide to proxies, as printed, in front of a gateway.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { FakeDevice } from '../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap } from '../support/devices/fake-fleet.ts'
import { codeBlocksOf } from '../support/documents/markdown.ts'
import { httpGet } from '../support/http-get.ts'
import { startTempGateway, type TempGateway } from '../support/processes/temp-gateway.ts'
import {
  startHaproxyWith,
  startNginxWith,
  type TempProxy,
  WITHOUT_HAPROXY,
  WITHOUT_NGINX,
} from '../support/processes/temp-proxy.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

const GUIDE = readFileSync(join(REPOSITORY_ROOT, 'docs/guides/proxies.md'), 'utf8')
const UPSTREAM = '127.0.0.1:8080'
/** The gateway takes a head of 64 KiB. */
const LONG = 'x'.repeat(63_000)

/** The block of a kind, with the address of the gateway. */
function configuration(kind: string, gateway: string): string {
  const text = codeBlocksOf(GUIDE).find((block) => block.kind === kind)?.text ?? ''
  assert.ok(text.includes(UPSTREAM), kind)
  return text.replaceAll(UPSTREAM, new URL(gateway).host)
}

const PROXIES = [
  ['nginx', WITHOUT_NGINX, (gateway: string) => startNginxWith(configuration('nginx', gateway))],
  [
    'haproxy',
    WITHOUT_HAPROXY,
    (gateway: string) => startHaproxyWith(configuration('haproxy', gateway), '127.0.0.1:8443'),
  ],
] as const

describe('the proxies of the guide', () => {
  const owned = new AsyncDisposableStack()
  const pcap = fleetPcap(0, 50)
  let gateway: TempGateway

  before(async () => {
    const redis = owned.use(await TempRedis.create())
    const device = owned.use(await FakeDevice.start('d0', pcap))
    gateway = owned.use(await startTempGateway([device], redis.url))
  })
  after(() => owned.disposeAsync())

  for (const [name, skip, start] of PROXIES)
    describe(name, { skip }, () => {
      let proxy: TempProxy
      before(async () => {
        proxy = owned.use(await start(gateway.url))
      })
      const get = (path: string) => httpGet(`${proxy.url}${path}`, { headers: gateway.as.user })

      test('passes a download on', async () => {
        const { status, body } = await get(`/devices/d0/api/v1/pcap/timerange?${FLEET_RANGE}`)
        assert.equal(status, 200)
        assert.ok(body.equals(pcap))
      })

      test('passes on a request as long as the gateway takes', async () => {
        const { status, headers } = await get(`/v1/devices?Unknown=${LONG}`)
        assert.equal(status, 200)
        assert.match(String(headers['capfleet-ignored']), /^Unknown/)
      })
    })
})
