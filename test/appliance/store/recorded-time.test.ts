import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  dropsIn,
  gapsIn,
  type RecordedTime,
  type TimedEvent,
  trimmedIn,
} from '../../../appliance/store/recorded-time.ts'
import type { StoredCapture } from '../../../appliance/store/stored-capture.ts'
import { type CaptureChanges, captureRecord } from '../../support/packets/capture-records.ts'

const S = 1_000_000_000n
const RANGE = { beginNs: 0n, endNs: 1_000n * S }

/** A capture between these times, in seconds. */
function captureOf(name: string, startS: number, endS: number, more: CaptureChanges = {}): StoredCapture {
  return captureRecord(name, { startNs: BigInt(startS) * S, endNs: BigInt(endS) * S, streams: [], ...more })
}

function eventOf(Kind: string, atS: number, more: Record<string, string> = {}): TimedEvent {
  return { TS: String(BigInt(atS) * S), Kind, ...more }
}

function recorded(captures: readonly StoredCapture[], more: Partial<RecordedTime> = {}): RecordedTime {
  return { captures, agedOut: [], events: [], running: undefined, nowNs: 2_000n * S, ...more }
}

const inS = (spans: readonly { readonly beginNs: bigint; readonly endNs: bigint }[]) =>
  spans.map(({ beginNs, endNs }) => [Number(beginNs / S), Number(endNs / S)])

test('gaps are between, before and after captures', () => {
  const captures = [captureOf('b', 500, 600), captureOf('a', 100, 200), captureOf('c', 150, 300)]
  assert.deepEqual(inS(gapsIn(RANGE, 0n, recorded(captures))), [
    [0, 100],
    [300, 500],
    [600, 1_000],
  ])
  assert.deepEqual(inS(gapsIn({ beginNs: 120n * S, endNs: 130n * S }, 0n, recorded(captures))), [])
  assert.deepEqual(inS(gapsIn(RANGE, 0n, recorded([]))), [[0, 1_000]])
})

test('gaps that are too short to be seen are left out, and what was removed close together is one', () => {
  const captures = [captureOf('a', 0, 200), captureOf('b', 205, 300), captureOf('c', 350, 1_000)]
  assert.deepEqual(inS(gapsIn(RANGE, 10n * S, recorded(captures))), [[300, 350]])
  const agedOut = captures.map(({ name, startNs, endNs }) => ({ name, startNs, endNs }))
  assert.deepEqual(inS(trimmedIn(RANGE, 10n * S, recorded([], { agedOut }))), [
    [0, 300],
    [350, 1_000],
  ])
})

test('there is no gap in the future, and none while a capture runs', () => {
  const captures = [captureOf('a', 100, 200, { state: 'active' })]
  const nowNs = 700n * S
  assert.deepEqual(inS(gapsIn(RANGE, 0n, recorded(captures, { nowNs }))), [
    [0, 100],
    [200, 700],
  ])
  assert.deepEqual(inS(gapsIn(RANGE, 0n, recorded(captures, { nowNs, running: 'a' }))), [[0, 100]])
  assert.deepEqual(gapsIn(RANGE, 0n, recorded([], { nowNs: -1n })), [])
})

test('what was removed is no gap', () => {
  const removed = { packets: 1n, bytes: 1n, startNs: 100n * S, endNs: 300n * S, segments: [] }
  const captures = [captureOf('a', 100, 400, { removed })]
  const agedOut = [{ name: 'gone', startNs: 0n, endNs: 90n * S }]
  const time = recorded(captures, { agedOut })
  assert.deepEqual(inS(gapsIn(RANGE, 0n, time)), [
    [90, 100],
    [400, 1_000],
  ])
  assert.deepEqual(inS(trimmedIn(RANGE, 0n, time)), [
    [0, 90],
    [100, 300],
  ])
  assert.deepEqual(inS(trimmedIn({ beginNs: 50n * S, endNs: 150n * S }, 0n, time)), [
    [50, 90],
    [100, 150],
  ])
})

test('a capture that continued after its recorder was down has a gap from its last packet on', () => {
  const segment = (number: number, minS: number, maxS: number) => ({
    number,
    minNs: BigInt(minS) * S,
    maxNs: BigInt(maxS) * S - 1n,
    packets: 1n,
    bytes: 100n,
  })
  const streams = [
    { port: 0, linkType: 1, snaplen: 1, segments: [segment(1, 110, 250), segment(2, 400, 500)] },
  ]
  const captures = [captureOf('a', 100, 600, { streams }), captureOf('other', 0, 50)]
  const events = [
    eventOf('capture-resumed', 390, { name: 'a' }),
    eventOf('capture-resumed', 700, { name: 'x' }),
  ]
  assert.deepEqual(inS(gapsIn(RANGE, 0n, recorded(captures, { events }))), [
    [50, 100],
    [250, 390],
    [600, 1_000],
  ])
})

test('no gap covers packets whose clock differs from that of the events', () => {
  const segment = (number: number, minS: number, maxS: number) => ({
    number,
    minNs: BigInt(minS) * S,
    maxNs: BigInt(maxS) * S - 1n,
    packets: 1n,
    bytes: 100n,
  })
  const segments = [segment(1, 110, 395), segment(2, 396, 500)]
  const streams = [{ port: 0, linkType: 1, snaplen: 262_144, segments }]
  const captures = [captureOf('a', 100, 600, { streams })]
  const events = [eventOf('capture-resumed', 390, { name: 'a' })]
  assert.deepEqual(
    inS(gapsIn({ beginNs: 110n * S, endNs: 600n * S }, 0n, recorded(captures, { events }))),
    [],
  )
})

test('drops are reported to the second, and joined if they are close together', () => {
  const drop = (atS: number, packets: number) =>
    eventOf('packets-dropped', atS, { name: 'a', packets: String(packets) })
  const events = [drop(10, 5), drop(11, 6), drop(30, 7), drop(2_000, 9)]
  const time = recorded([captureOf('a', 0, 100)], { events })
  const told = (apartS: bigint) =>
    dropsIn(RANGE, apartS * S, time).map(({ packets, ...span }) => [...(inS([span])[0] ?? []), packets])
  assert.deepEqual(told(1n), [
    [9, 11, 11n],
    [29, 30, 7n],
  ])
  assert.deepEqual(told(60n), [[9, 30, 18n]])
})

test('drops whose event is gone are somewhere in their capture', () => {
  const drops = { ring: 10n, disk: 5n }
  const captures = [
    captureOf('a', 100, 200, { drops }),
    captureOf('b', 300, 400, { drops: { ring: 4n, disk: 0n } }),
  ]
  const events = [eventOf('packets-dropped', 350, { name: 'b', packets: '4' })]
  assert.deepEqual(dropsIn(RANGE, 1n, recorded(captures, { events })), [
    { beginNs: 100n * S, endNs: 200n * S, packets: 15n },
    { beginNs: 349n * S, endNs: 350n * S, packets: 4n },
  ])
})
