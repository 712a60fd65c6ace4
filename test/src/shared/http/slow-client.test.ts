import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { watchSlowClient } from '../../../../src/shared/http/slow-client.ts'

const TURN_MS = 1_000
const MIB = 1_048_576

/** A download whose figures the test sets, and how often it was reported as slow. */
function watched({ isWanted = true } = {}) {
  mock.timers.enable({ apis: ['setInterval'] })
  const stage = { written: 0, writableLength: 0, isWanted, slow: 0 }
  const watch = watchSlowClient({
    res: stage,
    turnMs: TURN_MS,
    writtenBytes: () => BigInt(stage.written),
    isWanted: () => stage.isWanted,
    onSlow: () => {
      stage.slow += 1
    },
  })
  /** The download writes this many bytes, the client reads that many, and a turn ends. */
  const turn = async (written: number, taken: number): Promise<void> => {
    stage.written += written
    stage.writableLength += written - taken
    mock.timers.tick(TURN_MS)
    await new Promise(setImmediate)
  }
  return { stage, turn, [Symbol.dispose]: () => [watch[Symbol.dispose](), mock.timers.reset()] }
}

test('a client that hardly reads the available data is slow, and is reported once', async () => {
  using download = watched()
  await download.turn(4 * MIB, 1_000)
  assert.equal(download.stage.slow, 0, 'it has had no whole turn')
  for (let i = 0; i < 3; i++) await download.turn(1_000, 1_000)
  assert.equal(download.stage.slow, 1)
})

test('a client that keeps up with a body of which little comes is never slow', async () => {
  using download = watched()
  for (let i = 0; i < 5; i++) {
    // Something was written just before the turn ended; everything available before has been read.
    await download.turn(2_000, i === 0 ? 1_000 : 2_000)
  }
  await download.turn(0, 1_000)
  await download.turn(0, 0)
  assert.equal(download.stage.slow, 0)
})

test('a client that takes a mebibyte in each turn is not slow', async () => {
  using download = watched()
  await download.turn(64 * MIB, 0)
  for (let i = 0; i < 5; i++) await download.turn(0, MIB)
  assert.equal(download.stage.slow, 0)
})

test('a slow client is left alone while no one waits', async () => {
  using download = watched({ isWanted: false })
  for (let i = 0; i < 5; i++) await download.turn(i === 0 ? 4 * MIB : 0, 0)
  assert.equal(download.stage.slow, 0)
  download.stage.isWanted = true
  await download.turn(0, 0)
  assert.equal(download.stage.slow, 1)
})

test('nothing is reported after the end', async () => {
  const download = watched()
  await download.turn(4 * MIB, 0)
  download[Symbol.dispose]()
  await new Promise(setImmediate)
  assert.equal(download.stage.slow, 0)
})
