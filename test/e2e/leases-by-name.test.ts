// What gateways ask an appliance about leases, and what it does about them, in each other's words.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Device } from '../../src/device/device.ts'
import { DeviceClient } from '../../src/device/device-client.ts'
import { MERGE_READ_SIZE } from '../../src/device/read-size.ts'
import { probeReaders } from '../../src/fleet/health/device-probe.ts'
import { nameOfLease } from '../../src/lease/lease-scripts.ts'
import { writeBigCapture } from '../support/packets/big-capture.ts'
import { startTempAppliance } from '../support/processes/temp-appliance.ts'

const TARGET = '/api/v1/pcap/single?StreamName=big'

test('an appliance names the leases that it serves, and a gateway hears of those that it refuses', async () => {
  await using appliance = await startTempAppliance()
  const path = join(appliance.folder, 'big.pcap')
  await writeBigCapture(path)
  await appliance.importFiles('big', path)
  const [user = '', password = ''] = appliance.credentials('user').split(':')
  const device = new Device({ name: 'nyc1', url: appliance.url, user, password })
  const client = new DeviceClient(device, { connectTimeoutMs: 5_000, idleTimeoutMs: 30_000 })
  const { signal } = new AbortController()
  const limit = { signal, timeoutMs: 5_000 }
  const [served, late] = ['7f', '8a'].map((id) => nameOfLease({ id: `${id}-0`, turn: 2 ** 40 }))
  assert.ok(served && late)
  const under = (lease: string) =>
    client.openStream(TARGET, { lease, caller: 'test', readSize: MERGE_READ_SIZE, mayPause: false, signal })
  try {
    using _stream = await under(served)
    assert.deepEqual(await probeReaders(client, [served, late], limit), {
      count: 1,
      serving: new Set([served]),
    })
    await assert.rejects(under(late), { code: 'lease-revoked' })
    using again = await under(served)
    assert.equal(again.head.status, 200)
  } finally {
    client.close()
  }
})
