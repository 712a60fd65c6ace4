// The figures of a capture are exactly those of the records in its segments, across restarts and rolls.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_RATES } from '../../../../appliance/recorder/capture/capture-rates.ts'
import { CaptureTally } from '../../../../appliance/recorder/capture/capture-tally.ts'
import type { PortTotals } from '../../../../appliance/recorder/capture/recorded-capture.ts'
import type { LiveStream } from '../../../../native/live-capture.ts'
import { ScriptedEngine, scriptedStream } from '../../../support/live/scripted-engine.ts'

const RECORD_BYTES = 116n
const PORTS = [0, 3]
/** The records of the segments, by port. */
const totalsOf = (streams: readonly LiveStream[]): ReadonlyMap<number, PortTotals> =>
  new Map(
    streams.map(({ port, segments }) => {
      const packets = segments.reduce((sum, segment) => sum + segment.packets, 0n)
      return [port, { packets, bytes: packets * RECORD_BYTES }]
    }),
  )
const shown = (tally: CaptureTally, engine: ScriptedEngine) => {
  const { packets, bytes, ringDrops, diskDrops, ports } = tally.countsOf(engine.counts(), NO_RATES)
  return { packets, bytes, ringDrops, diskDrops, ofPorts: ports.map((one) => [one.packets, one.bytes]) }
}
const stored = (packets: bigint) => ({ storedPackets: packets, storedBytes: packets * RECORD_BYTES })

test('after a restart the packets and bytes of all segments count', () => {
  const before = [scriptedStream(0, 1, [3n, 4n, 5n]), scriptedStream(3, 1, [2n])]
  const tally = CaptureTally.start(totalsOf(before), { ring: 6n, disk: 7n })
  const engine = new ScriptedEngine(PORTS)
  engine.count(0, { ...stored(10n), ringDrops: 1n })
  engine.count(3, { ...stored(20n), diskDrops: 2n })
  assert.deepEqual(shown(tally, engine), {
    packets: 44n,
    bytes: 44n * RECORD_BYTES,
    ringDrops: 7n,
    diskDrops: 9n,
    ofPorts: [
      [22n, 22n * RECORD_BYTES],
      [22n, 22n * RECORD_BYTES],
    ],
  })
})

test('after rolls each capture has what the driver stored since the previous one ended', () => {
  const engine = new ScriptedEngine(PORTS)
  let tally = CaptureTally.start(totalsOf([scriptedStream(0, 1, [5n, 5n])]), undefined)
  engine.count(0, { ...stored(9n), ringDrops: 4n })
  engine.count(3, stored(1n))
  // Two packets on port 0 already belong to the next capture.
  tally = tally.afterRoll(
    totalsOf([scriptedStream(0, 1, [5n, 5n, 7n]), scriptedStream(3, 1, [1n])]),
    engine.counts(),
  )
  assert.deepEqual(shown(tally, engine), {
    packets: 2n,
    bytes: 2n * RECORD_BYTES,
    ringDrops: 0n,
    diskDrops: 0n,
    ofPorts: [
      [2n, 2n * RECORD_BYTES],
      [0n, 0n],
    ],
  })
  engine.count(0, { ...stored(19n), ringDrops: 5n })
  tally = tally.afterRoll(totalsOf([scriptedStream(0, 1, [6n, 6n])]), engine.counts())
  assert.deepEqual(shown(tally, engine), {
    packets: 0n,
    bytes: 0n,
    ringDrops: 0n,
    diskDrops: 0n,
    ofPorts: [
      [0n, 0n],
      [0n, 0n],
    ],
  })
})
