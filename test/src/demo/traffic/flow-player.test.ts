import assert from 'node:assert/strict'
import { test } from 'node:test'
import { playFlows } from '../../../../src/demo/traffic/flow-player.ts'
import { type Flow, flowSchedule } from '../../../../src/demo/traffic/flow-schedule.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

test('plays all packets of overlapping flows in order of time, equal times in order of the flows', (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  for (let round = 0; round < 200; round++) {
    let startNs = 0n
    const flows = Array.from({ length: random.integer(0, 30) }, (_, n) => {
      startNs += BigInt(random.integer(0, 5))
      return makeFlow(startNs, n, random.integer(1, 8), () => BigInt(random.integer(0, 6)))
    })
    const expected = flows
      .flatMap((flow) =>
        flow.packets.map(({ offsetNs, bytes }) => ({ timestampNs: flow.startNs + offsetNs, bytes })),
      )
      .sort((a, b) => Number(a.timestampNs - b.timestampNs))
    assert.deepEqual([...playFlows(flows.values())], expected)
  }
})

test('asks for a flow only when its time has come', () => {
  let made = 0
  function* flows(): Generator<Flow> {
    for (; made < 100; ) yield makeFlow(BigInt(made++) * 10n, made, 3, () => 4n)
  }
  const playing = playFlows(flows())
  for (let i = 0; i < 30; i++) playing.next()
  assert.ok(made <= 13, `${made} flows were made for 30 packets`)
})

test('a schedule spreads flows evenly and ends with enough packets', () => {
  const makeFlowAt = (startNs: bigint) => makeFlow(startNs, 0, 10, () => 1n).packets
  const flows = [
    ...flowSchedule({ startNs: 1000n, durationNs: 1_000_000n, packets: 995, makeFlow: makeFlowAt }),
  ]
  assert.equal(flows.length, 100)
  assert.equal(flows[0]?.startNs, 1000n)
  const gaps = flows.slice(1).map((flow, i) => flow.startNs - (flows[i]?.startNs ?? 0n))
  assert.ok(gaps.every((gap) => gap >= 9740n && gap <= 9760n))
  assert.ok((flows.at(-1)?.startNs ?? 0n) < 1_001_000n)
})

function makeFlow(startNs: bigint, number: number, packets: number, gapNs: () => bigint): Flow {
  let offsetNs = 0n
  return {
    startNs,
    packets: Array.from({ length: packets }, (_, n) => {
      if (n > 0) offsetNs += gapNs()
      return { offsetNs, fromClient: true, bytes: Buffer.from(`${number}.${n}`) }
    }),
  }
}
