/** What a file in pcapng says about missing packets, from records, events and flags of segments. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lostPackets } from '../../../appliance/downloads/lost-packets.ts'
import { LogEntryKind, packLogEntries, SegmentFlag } from '../../../native/segment-entry.ts'
import { parseDownloadQuery } from '../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../src/shared/query/parse-query-string.ts'
import { captureRecord } from '../../support/packets/capture-records.ts'

const S = 1_000_000_000n
const queryOf = (kind: 'single' | 'timerange', text: string) =>
  parseDownloadQuery(kind, parseQueryString(text), { zone: 'UTC', nowNs: 2_000n * S })
const TIMERANGE = queryOf('timerange', 'TSBegin=0&TSEnd=1000&TSUnit=sec')

const segment = (number: number, minS: number, maxS: number) => ({
  number,
  minNs: BigInt(minS) * S,
  maxNs: BigInt(maxS) * S - 1n,
  packets: 1n,
  bytes: 100n,
})
const streams = [{ port: 0, linkType: 1, snaplen: 1, segments: [segment(1, 110, 250), segment(2, 400, 500)] }]
const drops = { ring: 3n, disk: 4n }
const a = captureRecord('a', { startNs: 100n * S, endNs: 600n * S, streams, drops })
const held = {
  captures: [a, captureRecord('b', { startNs: 700n * S, endNs: 900n * S, streams: [], drops })],
  agedOut: [],
}
const events = [{ TS: String(390n * S), Kind: 'capture-resumed', name: 'a' }]
const selection = { captures: ['a'], streams: [] }

test('gaps between captures, and those inside one when no recorder was running', () => {
  const { gaps, interruptions } = lostPackets(TIMERANGE, { held, selection, events })
  const between = [
    { beginNs: 0n, endNs: 100n * S },
    { beginNs: 600n * S, endNs: 700n * S },
  ]
  assert.deepEqual(gaps, between)
  assert.deepEqual(interruptions, [{ beginNs: 250n * S, endNs: 390n * S }])
  assert.deepEqual(lostPackets(TIMERANGE, { held, selection, events: [] }).interruptions, [])
  const single = queryOf('single', 'StreamName=a')
  const ofSingle = lostPackets(single, { held: { ...held, captures: [a] }, selection, events })
  assert.deepEqual(ofSingle.gaps, [])
  assert.deepEqual(ofSingle.interruptions, interruptions)
})

test('drops of the captures that are read, and their damaged segments', () => {
  const entry = (number: number, flags: number) => ({
    ...segment(number, 10 * number, 10 * number + 5),
    kind: LogEntryKind.finished,
    port: 7,
    flags,
    linkType: 1,
    snaplen: 1,
    sideBytes: 0,
    checksum: 0,
  })
  const segments = packLogEntries([entry(1, 0), entry(2, SegmentFlag.damaged), entry(3, SegmentFlag.flat)])
  const read = { captures: ['a'], streams: [{ port: 7, folder: '/store/a/cap7', segments }] }
  const lost = lostPackets(TIMERANGE, { held, selection: read, events })
  assert.deepEqual(lost.drops, [{ captureName: 'a', ...drops }])
  assert.deepEqual(lost.damaged, [{ port: 7, beginNs: 20n * S, endNs: 25n * S - 1n }])
})
