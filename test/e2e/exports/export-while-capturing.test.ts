// An export whose range ends now has every packet of its range, although the last ones were not on disk when it was
// ordered.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { putUser } from '../../../src/shared/auth/edit-users-file.ts'
import { eventually } from '../../support/eventually.ts'
import { httpGet } from '../../support/http-get.ts'
import { captureWire, WITHOUT_WIRE } from '../../support/network/capture-wire.ts'
import { NumberedSender } from '../../support/packets/numbered-sender.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { ApplianceProcess } from '../../support/processes/appliance-process.ts'
import { RecorderProcess } from '../../support/processes/recorder-process.ts'
import { startTempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'
import { APPLIANCE_PASSWORD } from '../../support/suite-secrets.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const PACKETS_PER_TICK = 10
/** Packets stay in memory for this long: an export that did not wait would lack them. */
const SYNC_MS = 3_000

test('an export up to now, and one that ends in a second, are what a download gives later', {
  skip: WITHOUT_WIRE,
}, async () => {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder())
  await putUser(join(folder.path, 'users.yaml'), { name: 'full', role: 'full' }, APPLIANCE_PASSWORD)
  const wire = parts.use(await captureWire())
  const recorder = parts.use(
    await RecorderProcess.start({ wire, folder: folder.path, capture: { syncIntervalMs: SYNC_MS } }),
  )
  const appliance = parts.use(await ApplianceProcess.start(recorder.configPath))
  const redis = parts.use(await TempRedis.create())
  process.env.LIVE_DEVICE_PASSWORD = APPLIANCE_PASSWORD
  const device = { name: 'live', url: appliance.url, user: 'full', password: { env: 'LIVE_DEVICE_PASSWORD' } }
  const gateway = parts.use(await startTempGateway([], redis.url, { devices: [device] }))
  parts.use(await startTempWorker(gateway))
  const as = { headers: gateway.as.user }

  await recorder.client.startCapture('busy')
  const sender = parts.use(await NumberedSender.start(wire, PACKETS_PER_TICK))
  await eventually(() => sender.sent > 2_000, { message: 'packets are sent' })
  const inASecond = String(BigInt(Date.now() + 1_000) * 1_000_000n)
  const orders = ['now', inASecond].map(async (end) => {
    const query = `TSBegin=-60s&TSEnd=${end}`
    const ordered = await httpGet(`${gateway.url}/v1/exports?${query}`, { ...as, method: 'POST' })
    assert.equal(ordered.status, 202, ordered.body.toString())
    return `${gateway.url}/v1/exports/${ordered.json().id}`
  })
  for (const url of await Promise.all(orders)) {
    await httpGet(`${url}/events`, as)
    const done = (await httpGet(url, as)).json()
    assert.equal(done.state, 'complete', JSON.stringify(done))
    const file = (await httpGet(`${url}/file`, as)).body
    await eventually(
      async () => (await recorder.client.captureReport()).counts.flushedNs > endOf(String(done.query)),
      { message: 'all of its time is on the disk' },
    )
    const download = await httpGet(`${gateway.url}/api/v1/pcap/timerange?${done.query}`, as)
    assert.ok(readPcap(file).records.length > 1_000)
    assert.deepEqual(
      readPcap(file).records.length,
      readPcap(download.body).records.length,
      'the export has as many packets as a download that comes later',
    )
    assert.ok(file.equals(download.body))
  }
})

function endOf(query: string): bigint {
  return BigInt(new URLSearchParams(query).get('TSEnd') ?? '')
}
