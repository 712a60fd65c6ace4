/**
 * A device loses power in the middle of a merge and is back within a second: the client's file is, byte for byte, that
 * of an undisturbed run.
 *
 *   RESTARTS=<n>   number of restarts (3 in npm test, 200 in the long run)
 *   SEED=<n>       repeats the choice of devices and moments
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { simulatedDigest } from '../../support/devices/simulated-capture.ts'
import {
  RESTART_DEVICES,
  RESTART_PACKETS,
  restartRound,
  startRestartStage,
} from '../../support/live/restart-round.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const RESTARTS = Number(process.env.RESTARTS ?? 3)
const GROUPS = 4
const ALL = Array.from({ length: RESTART_DEVICES }, (_, index) => index)

describe('a device that is killed in the middle of a merge', {
  timeout: TEST_LIMIT_MS + RESTARTS * 10_000,
}, () => {
  test(`and restarted: ${RESTARTS} times the file is that of an undisturbed run`, async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    await using stage = await startRestartStage(GROUPS)
    const expected = simulatedDigest(ALL, RESTART_PACKETS)
    const others: string[] = []
    let left = RESTARTS
    const restartAgain = async (group: number): Promise<void> => {
      while (left > 0) {
        left -= 1
        const got = await restartRound(stage, group, { random })
        if (got !== expected) others.push(got)
      }
    }
    await Promise.all(stage.groups.map((_, group) => restartAgain(group)))
    t.diagnostic(`${RESTARTS - others.length} of ${RESTARTS} identical`)
    assert.deepEqual(others, [])
  })

  test('negative control: one that returns with other packets is never taken for the same', async () => {
    await using stage = await startRestartStage(1)
    const whileDark = (device: { holdCaptureOf(index: number): void }) => device.holdCaptureOf(7)
    const early = { ...seededRandom(1), integer: () => 100 }
    const got = await restartRound(stage, 0, { random: early, whileDark })
    assert.match(got, /^cut: /, 'a client must not get a file that is not the capture')
  })
})
