// An export whose range ends in the future waits for it part by part, and is complete in the end.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeDevice } from '../../support/devices/fake-device.ts'
import { eventually } from '../../support/eventually.ts'
import type { ShownExport } from '../../support/exports/export-world.ts'
import { httpGet } from '../../support/http-get.ts'
import { startSmallFleet } from '../../support/processes/small-fleet.ts'
import { startTempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'

const SECOND_NS = 1_000_000_000n

test('an export that ends in the future is complete after its end, with all of its parts', async () => {
  await using fleet = await startSmallFleet()
  const { gateway } = fleet
  await using _worker = await startTempWorker(gateway)
  const as = { headers: gateway.as.user }
  const beginNs = BigInt(Date.now()) * 1_000_000n - 2n * SECOND_NS
  const endNs = beginNs + 4n * SECOND_NS
  const query = `TSBegin=${beginNs}&TSEnd=${endNs}&PartTime=1s`
  const ordered = await httpGet(`${gateway.url}/v1/exports?${query}`, { ...as, method: 'POST' })
  assert.equal(ordered.status, 202, ordered.body.toString())
  const url = `${gateway.url}/v1/exports/${ordered.json().id}`
  await httpGet(`${url}/events`, as)
  const done = (await httpGet(url, as)).json()
  assert.equal(done.state, 'complete', JSON.stringify(done))
  assert.equal((done.files as unknown[]).length, 4)
  assert.ok(BigInt(Date.parse(String(done.endedAt))) * 1_000_000n >= endNs)
})

test('an export that waits for its end can be cancelled', async () => {
  await using fleet = await startSmallFleet()
  const { gateway } = fleet
  await using _worker = await startTempWorker(gateway)
  const as = { headers: gateway.as.user }
  const endNs = BigInt(Date.now() + 3_600_000) * 1_000_000n
  const query = `TSBegin=-1m&TSEnd=${endNs}`
  const ordered = await httpGet(`${gateway.url}/v1/exports?${query}`, { ...as, method: 'POST' })
  const url = `${gateway.url}/v1/exports/${ordered.json().id}`
  const following = httpGet(`${url}/events`, as)
  assert.equal((await httpGet(url, { ...as, method: 'DELETE' })).json().state, 'cancelled')
  assert.match((await following).body.toString(), /"state":"cancelled"/)
})

test('an export that waits for a device whose clock is late says so', async () => {
  await using redis = await TempRedis.create()
  await using late = await FakeDevice.start('late', Buffer.alloc(24))
  late.clockAheadNs = -86_400n * SECOND_NS
  await using gateway = await startTempGateway([late], redis.url)
  await using _worker = await startTempWorker(gateway)
  const as = { headers: gateway.as.user }
  const ordered = await httpGet(`${gateway.url}/v1/exports?TSBegin=-1m&TSEnd=now`, { ...as, method: 'POST' })
  const url = `${gateway.url}/v1/exports/${ordered.json().id}`
  let said: ShownExport['progress']['waiting'] = null
  const isSaid = async () => {
    said = ((await httpGet(url, as)).json() as unknown as ShownExport).progress.waiting
    return said !== null
  }
  await eventually(isSaid, { message: 'the export says why it waits' })
  const { device, detail } = said ?? assert.fail()
  assert.equal(device, late.name)
  assert.match(detail, /; its clock is 86\d{3}(\.\d)? s behind ours$/)
  await httpGet(url, { ...as, method: 'DELETE' })
})
