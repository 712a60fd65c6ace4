import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Clocks, ClockWatch } from '../../../../appliance/recorder/clock/clock-watch.ts'
import { clockNs } from '../../../../native/addon.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const MS = 1_000_000n
const HOUR = 3_600_000n * MS

/** Clocks that a test sets; reading them takes some time, as with real ones. */
class SimulatedClocks implements Clocks {
  monotonic = 5_000n * MS
  realtime = 1_700_000_000_000n * MS
  readingNs = 300n

  realtimeNs(): bigint {
    this.pass(this.readingNs)
    return this.realtime
  }

  monotonicNs(): bigint {
    this.pass(this.readingNs)
    return this.monotonic
  }

  pass(ns: bigint): void {
    this.monotonic += ns
    this.realtime += ns
  }
}

function watched() {
  const clocks = new SimulatedClocks()
  const steps: bigint[] = []
  const events = {
    append: (kind: string, { stepNs }: Record<string, unknown>) => {
      assert.equal(kind, 'clock-stepped')
      steps.push(BigInt(String(stepNs)))
    },
  }
  return { clocks, steps, watch: new ClockWatch({ clocks, events }) }
}

/** The observed values, without the time that reading the clocks takes. */
const rounded = (steps: readonly bigint[]): bigint[] =>
  steps.map((ns) => ((ns + (ns < 0n ? -MS : MS) / 2n) / MS) * MS)

test('a clock that runs is no event, however long', () => {
  const { clocks, steps, watch } = watched()
  for (let i = 0; i < 1_000; i++) {
    clocks.pass(BigInt(i) * 1_000n * MS)
    watch.check()
  }
  assert.deepEqual(steps, [])
})

test('every step is one event, back and forward, an hour or 2 ms', () => {
  const random = seededRandom()
  const { clocks, steps, watch } = watched()
  const expected = [HOUR, -HOUR, 2n * MS, -2n * MS, -(clocks.realtime / 2n / MS) * MS, 37_000n * MS]
  for (const stepNs of expected) {
    clocks.pass(1_000n * MS)
    clocks.realtime += stepNs
    clocks.readingNs = BigInt(random.integer(50, 5_000))
    watch.check()
    clocks.pass(1_000n * MS)
    watch.check()
  }
  assert.deepEqual(rounded(steps), expected, `SEED=${random.seed}`)
})

test('less than a millisecond is not a step, nor is an interrupted reading', () => {
  const { clocks, steps, watch } = watched()
  clocks.realtime += MS / 2n
  watch.check()
  clocks.readingNs = 50n * MS
  watch.check()
  assert.deepEqual(steps, [])
  clocks.readingNs = 300n
  clocks.realtime += 3n * MS
  watch.check()
  assert.equal(steps.length, 1)
})

test("the machine's own clocks agree while they are not set", () => {
  const steps: string[] = []
  const watch = new ClockWatch({
    clocks: { realtimeNs: clockNs, monotonicNs: () => process.hrtime.bigint() },
    events: { append: (kind) => void steps.push(kind) },
  })
  for (let i = 0; i < 10_000; i++) watch.check()
  assert.deepEqual(steps, [])
})
