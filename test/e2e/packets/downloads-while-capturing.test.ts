// Four downloads at full speed, as many as a device serves, make a capture lose no packet.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { captureWhileReading } from '../../support/live/busy-capture.ts'
import { captureWire, WITHOUT_WIRE } from '../../support/network/capture-wire.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const PACKETS = 16_384
const ROUNDS = 2
/** Far below the lossless maximum, because the machine of a test does other things too. */
const PACKETS_PER_SECOND = 10_000

test('four clients download at full speed, and every packet is stored', {
  skip: WITHOUT_WIRE,
}, async (t) => {
  await using folder = await tempFolder()
  await using wire = await captureWire()
  const traffic = join(folder.path, 'sent.pcap')
  await writeBigCapture(traffic, PACKETS)
  const run = await captureWhileReading({
    wire,
    traffic,
    rounds: ROUNDS,
    packetsPerSecond: PACKETS_PER_SECOND,
    readers: ['none', 'none', 'fast', 'fast'],
  })
  t.diagnostic(`${run.sent} packets in ${run.seconds.toFixed(1)} s, ${run.downloads} downloads meanwhile`)
  assert.equal(run.sent, BigInt(PACKETS * ROUNDS))
  assert.deepEqual([run.stored, run.drops], [run.sent, 0n])
  assert.ok(run.downloads > 0)
})
