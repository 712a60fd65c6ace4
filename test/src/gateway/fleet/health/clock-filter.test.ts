import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ClockFilter } from '../../../../../src/gateway/fleet/health/clock-filter.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'

const MS = 1_000_000n

describe('the clock offset of several probes', () => {
  test('is that of the quickest probe, with a bound that grows with its age', () => {
    const filter = new ClockFilter()
    assert.equal(filter.best(0), undefined)
    filter.add({ offsetNs: 40n * MS, errorNs: 60n * MS }, 0)
    filter.add({ offsetNs: 2n * MS, errorNs: 1n * MS }, 5_000)
    filter.add({ offsetNs: 9n * MS, errorNs: 30n * MS }, 10_000)
    assert.deepEqual(filter.best(10_000), { offsetNs: 2n * MS, errorNs: 1n * MS + 500_000n })
  })

  test('is the new one at once when a clock was set', () => {
    const filter = new ClockFilter()
    filter.add({ offsetNs: 0n, errorNs: 1n * MS }, 0)
    filter.add({ offsetNs: 3_600_000n * MS, errorNs: 50n * MS }, 5_000)
    assert.deepEqual(filter.best(5_000), { offsetNs: 3_600_000n * MS, errorNs: 50n * MS })
    filter.add({ offsetNs: 3_600_010n * MS, errorNs: 40n * MS }, 10_000)
    assert.equal(filter.best(10_000)?.offsetNs, 3_600_010n * MS)
  })

  test('forgets all that came before when a clock was set, also what agrees by chance', () => {
    const filter = new ClockFilter()
    filter.add({ offsetNs: 0n, errorNs: 60n * MS }, 0)
    filter.add({ offsetNs: 50n * MS, errorNs: 20n * MS }, 0)
    filter.add({ offsetNs: 100n * MS, errorNs: 35n * MS }, 0)
    assert.deepEqual(filter.best(0), { offsetNs: 100n * MS, errorNs: 35n * MS })
  })

  test('forgets a probe after a while, however quick it was', () => {
    const filter = new ClockFilter()
    filter.add({ offsetNs: 5n * MS, errorNs: 1n }, 0)
    for (let probe = 1; probe <= 8; probe += 1) filter.add({ offsetNs: 6n * MS, errorNs: 20n * MS }, probe)
    assert.equal(filter.best(8)?.offsetNs, 6n * MS)
  })

  const random = seededRandom()
  test(`always holds the truth of a clock that drifts by less than 100 ppm (SEED=${random.seed})`, () => {
    for (let run = 0; run < 200; run += 1) {
      const filter = new ClockFilter()
      const driftNsPerMs = random.integer(-100, 100)
      const truthAt = (ms: number) => BigInt(ms * driftNsPerMs)
      for (let ms = 0; ms < 200_000; ms += random.integer(500, 6_000)) {
        const errorNs = BigInt(random.integer(1_000, 90_000_000))
        const wrongNs = BigInt(random.integer(-Number(errorNs), Number(errorNs)))
        filter.add({ offsetNs: truthAt(ms) + wrongNs, errorNs }, ms)
        const best = filter.best(ms)
        assert.ok(best)
        const apartNs = best.offsetNs - truthAt(ms)
        assert.ok(apartNs <= best.errorNs && -apartNs <= best.errorNs, `${apartNs} of ${best.errorNs} ns`)
        assert.ok(best.errorNs <= errorNs)
      }
    }
  })
})
