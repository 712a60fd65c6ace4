// A Redis with Sentinels fails over, with TLS and passwords: running downloads continue, new ones work again, and so do
// exports.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { TempAuthority } from '../../support/access/temp-authority.ts'
import { FakeDevice } from '../../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap } from '../../support/devices/fake-fleet.ts'
import { eventually } from '../../support/eventually.ts'
import { httpGet, httpOpen } from '../../support/http-get.ts'
import { GROUP, PASSWORDS, SentinelWorld } from '../../support/processes/redis-node.ts'
import { startTempGateway } from '../../support/processes/temp-gateway.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const PACKETS = 4_000
const PATH = `/devices/d0/api/v1/pcap/timerange?${FLEET_RANGE}`

describe('a failover of Redis', () => {
  test('cuts no download, and new ones and exports recover automatically', async (t) => {
    await using folder = await tempFolder()
    await using authority = await TempAuthority.create()
    const files = { ...(await authority.issue('redis')), ca: authority.ca }
    const [ca, cert, key] = await Promise.all([read(files.ca), read(files.cert), read(files.key)])
    await using world = await SentinelWorld.start({
      folder: folder.path,
      tls: files,
      access: { tls: { ca, cert, key } },
    })
    await writeFile(join(folder.path, 'redis'), PASSWORDS.redis)
    await writeFile(join(folder.path, 'sentinel'), PASSWORDS.sentinel)
    await using device = await FakeDevice.start('d0', fleetPcap(0, PACKETS))
    await using gateway = await startTempGateway([device], undefined, {
      redis: {
        sentinels: world.addresses,
        sentinelName: GROUP,
        password: { file: join(folder.path, 'redis') },
        sentinelPassword: { file: join(folder.path, 'sentinel') },
        ca: files.ca,
        cert: files.cert,
        key: files.key,
      },
    })
    await using _worker = await startTempWorker(gateway)
    const headers = gateway.as.user
    const whole = fleetPcap(0, PACKETS)
    // The device stands still in the middle of the body until the failover is over.
    const failedOver = Promise.withResolvers<void>()
    device.behaviour = { hangAfterBytes: whole.length / 2, resumed: failedOver.promise }
    const running = await httpOpen(gateway.url + PATH, { headers })
    assert.equal(running.response.statusCode, 200)
    const body = buffer(running.response)
    await world.primary.signal('SIGKILL')
    const killedMs = performance.now()
    await eventually(async () => (await world.primaryPort()) === world.replica.port, {
      message: 'the replica is the primary',
    })
    assert.equal(device.readers, 1, 'the download is still running')
    failedOver.resolve()
    assert.ok((await body).equals(whole))
    t.diagnostic(`the running download ended whole ${Math.round(performance.now() - killedMs)} ms later`)
    device.behaviour = {}
    await eventually(
      async () => {
        const answer = await httpGet(`${gateway.url}${PATH}&Wait=1`, { headers })
        if (answer.status === 200) assert.ok(answer.body.equals(whole))
        else assert.equal(answer.status, 503, answer.body.toString())
        return answer.status === 200
      },
      { message: 'new downloads come' },
    )
    t.diagnostic(`new downloads ${Math.round(performance.now() - killedMs)} ms later`)
    const order = await httpGet(`${gateway.url}/v1/exports?${FLEET_RANGE}&Device=d0`, {
      headers,
      method: 'POST',
    })
    assert.equal(order.status, 202, order.body.toString())
    const { id } = order.json()
    await eventually(
      async () => (await httpGet(`${gateway.url}/v1/exports/${id}`, { headers })).json().state === 'complete',
      { message: 'the export is complete' },
    )
    const exported = await httpGet(`${gateway.url}/v1/exports/${id}/file`, { headers })
    assert.equal(hashOf(exported.body), hashOf(whole))
  })
})

const read = (path: string) => readFile(path, 'utf8')

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
