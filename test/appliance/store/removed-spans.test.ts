import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agedOutBeforeNs } from '../../../appliance/store/removed-spans.ts'
import { oldestHeldNs } from '../../../appliance/store/stored-capture.ts'
import { captureRecord } from '../../support/packets/capture-records.ts'

const whole = captureRecord('whole', { startNs: 500n, endNs: 600n })
const trimmed = captureRecord('trimmed', {
  startNs: 100n,
  endNs: 300n,
  streams: [
    {
      port: 0,
      linkType: 1,
      snaplen: 65_535,
      segments: [{ number: 2, minNs: 200n, maxNs: 299n, packets: 10n, bytes: 1_024n }],
    },
  ],
  removed: { packets: 1n, bytes: 40n, startNs: 100n, endNs: 200n },
})
const gone = { name: 'gone', startNs: 10n, endNs: 50n }
const ask = (beginNs: bigint, endNs: bigint, captures = [whole, trimmed], agedOut = [gone]) =>
  agedOutBeforeNs({ beginNs, endNs }, { captures, agedOut }, { isForced: false })

test('a range before all that is held is gone, and the answer says what is held', () => {
  const error = {
    code: 'aged-out',
    message: /oldest stored packet is from 200 ns/,
    details: { members: { oldestNs: '200' } },
  }
  for (const range of [
    [0n, 5n],
    [20n, 40n],
    [100n, 200n],
  ] as const)
    assert.throws(() => ask(range[0], range[1]), error)
})

test('a range that was removed in part says from when on it is whole', () => {
  assert.equal(ask(150n, 250n), 200n)
  assert.equal(ask(20n, 560n), 200n)
  assert.equal(ask(20n, 560n, [whole], [gone]), 50n)
  assert.equal(ask(0n, 2n ** 60n, [trimmed], []), 200n)
})

test('a range that holds no more than the last packet held is no lost one', () => {
  assert.equal(ask(299n, 400n, [trimmed], []), undefined)
  assert.equal(ask(299n, 300n, [trimmed], [{ ...gone, endNs: 300n }]), 300n)
})

test('a range of which nothing was removed says nothing', () => {
  assert.equal(ask(200n, 300n), undefined)
  assert.equal(ask(510n, 520n), undefined)
  assert.equal(ask(0n, 5n, [whole], []), undefined, 'nothing was ever removed')
})

test('a removed range is gone although older packets were imported since', () => {
  const imported = captureRecord('old', { startNs: 1n, endNs: 5n })
  assert.throws(() => ask(20n, 40n, [imported, whole], [gone]), { code: 'aged-out' })
})

test('the oldest packet held is that of the first segment left', () => {
  assert.equal(oldestHeldNs(trimmed), 200n)
  assert.equal(oldestHeldNs(captureRecord('empty', { streams: [] })), undefined)
})

test('callers with a forced filter get whole minutes, and the same for all ranges in the same minutes', () => {
  const MINUTE = 60_000_000_000n
  const [removedNs, oldestNs] = [10n * MINUTE + 7n, 12n * MINUTE + 5n]
  const held = captureRecord('held', {
    startNs: 5n * MINUTE,
    endNs: 20n * MINUTE,
    streams: [
      {
        port: 0,
        linkType: 1,
        snaplen: 65_535,
        segments: [{ number: 2, minNs: oldestNs, maxNs: 20n * MINUTE - 1n, packets: 10n, bytes: 1_024n }],
      },
    ],
    removed: { packets: 1n, bytes: 40n, startNs: 5n * MINUTE, endNs: removedNs },
  })
  const answer = (beginNs: bigint, endNs: bigint): string => {
    try {
      return String(
        agedOutBeforeNs({ beginNs, endNs }, { captures: [held], agedOut: [] }, { isForced: true }),
      )
    } catch (error) {
      return String((error as Error).message)
    }
  }
  const wholeMinutes = String(11n * MINUTE)
  const near = [-3n, -2n, -1n, 0n, 1n, 2n, 3n]
  for (const turn of [removedNs, oldestNs]) {
    const begins = new Set(near.map((ns) => answer(turn + ns, 30n * MINUTE)))
    const ends = new Set(near.map((ns) => answer(0n, turn + ns)))
    assert.deepEqual([begins.size, ends.size], [1, 1])
  }
  assert.equal(answer(10n * MINUTE + 50n, 30n * MINUTE), wholeMinutes, 'says less is there, never more')
  assert.equal(answer(11n * MINUTE, 30n * MINUTE), 'undefined')
  assert.equal(answer(0n, 30n * MINUTE), wholeMinutes)
  assert.match(answer(6n * MINUTE, 7n * MINUTE), /the oldest stored packet is from 780000000000 ns/)
})
