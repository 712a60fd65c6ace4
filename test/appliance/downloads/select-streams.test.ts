import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type StreamSelection, selectStreams } from '../../../appliance/downloads/select-streams.ts'
import type { StoredCapture } from '../../../appliance/store/stored-capture.ts'
import { LOG_ENTRY_BYTES, readLogEntry } from '../../../native/segment-entry.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import type { DownloadQuery } from '../../../src/shared/query/download/download-query.ts'
import { captureRecord } from '../../support/packets/capture-records.ts'

const select = (
  captures: StoredCapture[],
  beginNs: bigint,
  endNs: bigint,
  query: Partial<Pick<DownloadQuery, 'timeSource' | 'frameFilter'>> = {},
): StreamSelection =>
  selectStreams(captures, {
    query: { beginNs, endNs, timeSource: 'nic', frameFilter: [], ...query },
    folderOf: ({ name }) => `/store/${name}`,
  })

const segment = (number: number, minNs: bigint, maxNs: bigint) => ({
  number,
  minNs,
  maxNs,
  packets: 1n,
  bytes: 100n,
})
const ofLinkType = (name: string, linkType: number): StoredCapture =>
  captureRecord(name, {
    streams: [{ port: 0, linkType, snaplen: 65_535, segments: [segment(1, 1_000n, 1_999n)] }],
  })
/** The numbers of the segments of each stream. */
const numbersOf = ({ streams }: StreamSelection) =>
  streams.map(({ port, folder, segments }) => [
    port,
    folder,
    Array.from(
      { length: segments.length / LOG_ENTRY_BYTES },
      (_, i) => readLogEntry(Buffer.from(segments), i * LOG_ENTRY_BYTES).number,
    ),
  ])
const twoPorts = captureRecord('two', {
  startNs: 100n,
  endNs: 401n,
  streams: [
    {
      port: 0,
      linkType: 1,
      snaplen: 65_535,
      segments: [segment(1, 100n, 199n), segment(2, 200n, 299n), segment(3, 300n, 400n)],
    },
    { port: 3, linkType: 1, snaplen: 65_535, segments: [segment(1, 250n, 260n)] },
  ],
})

test('takes exactly the segments that reach into the half-open range', () => {
  assert.deepEqual(numbersOf(select([twoPorts], 200n, 300n)), [
    [0, '/store/two/cap0', [2]],
    [3, '/store/two/cap3', [1]],
  ])
  assert.deepEqual(numbersOf(select([twoPorts], 199n, 201n)), [[0, '/store/two/cap0', [1, 2]]])
  assert.equal(select([twoPorts], 400n, 401n).streams.length, 1)
  assert.deepEqual(select([twoPorts], 401n, 500n).streams, [])
  assert.deepEqual(select([twoPorts], 0n, 100n).streams, [])
})

test('a vendor’s clock gets the segments before the range that it needs', () => {
  const second = 1_000_000_000n
  const capture = captureRecord('long', {
    startNs: 100n * second,
    endNs: 200n * second,
    streams: [
      {
        port: 0,
        linkType: 1,
        snaplen: 65_535,
        segments: [
          segment(1, 100n * second, 120n * second),
          segment(2, 120n * second, 150n * second),
          segment(3, 150n * second, 180n * second),
          segment(4, 180n * second, 199n * second),
        ],
      },
    ],
  })
  const numbers = (timeSource: DownloadQuery['timeSource']) =>
    numbersOf(select([capture], 181n * second, 190n * second, { timeSource }))[0]?.[2]
  assert.deepEqual(numbers('nic'), [4])
  assert.deepEqual(numbers('vendorA7130'), [4])
  assert.deepEqual(numbers('vendorA7150_insert'), [3, 4])
  assert.deepEqual(numbers('vendorB_erspan3'), [1, 2, 3, 4])
  const after = select([capture], 199_500_000_000n, 199_600_000_000n, { timeSource: 'vendorB_erspan3' })
  assert.deepEqual(after.streams, [], 'nothing of the range, nothing of what is before')
})

test('ports that capture.port leaves out are not read, and no vendor’s clock learns from them', () => {
  const ports = (query: Parameters<typeof select>[3]) =>
    select([twoPorts], 200n, 300n, query).streams.map(({ port }) => port)
  const condition = (op: '==' | '!=', ...values: number[]) => ({ field: 'capture.port' as const, op, values })
  assert.deepEqual(ports({ frameFilter: [condition('==', 3)] }), [3])
  assert.deepEqual(ports({ frameFilter: [condition('!=', 3, 4)] }), [0])
  assert.deepEqual(ports({ frameFilter: [condition('==', 0, 3), condition('!=', 0)] }), [3])
  assert.deepEqual(ports({ frameFilter: [{ field: 'a7130.srcport', op: '==', values: [9] }] }), [0, 3])
  assert.deepEqual(ports({ frameFilter: [condition('==', 3)], timeSource: 'vendorB_erspan3' }), [3])
})

test('older captures come first: they win ties', () => {
  const newestFirst = [captureRecord('b', { startNs: 1_500n }), captureRecord('a')]
  const selection = select(newestFirst, 0n, 5_000n)
  assert.deepEqual(selection.captures, ['a', 'b'])
  assert.deepEqual(
    selection.streams.map(({ folder }) => folder),
    ['/store/a/cap0', '/store/b/cap0'],
  )
})

test('several link types are refused, with the captures of each', () => {
  const mixed = [captureRecord('ether'), ofLinkType('wifi', 127)]
  assert.throws(
    () => select(mixed, 0n, 5_000n),
    (error) => {
      assert.ok(error instanceof CapfleetError)
      assert.equal(error.code, 'mixed-link-type')
      assert.match(error.message, /IEEE802_11_RADIOTAP \(wifi\)/)
      assert.match(error.message, /EN10MB \(ether\)/)
      assert.match(error.message, /choose a capture or range of one type, or a port .* with FilterPort/)
      return true
    },
  )
  assert.equal(select(mixed, 5_000n, 6_000n).streams.length, 0, 'outside of the range nothing is mixed')
})

test('several link types in one capture are refused with their ports, and with FilterPort as the way out', () => {
  const ofPort = (port: number, linkType: number) => ({
    ...{ port, linkType, snaplen: 65_535 },
    segments: [segment(1, 1_000n, 1_999n)],
  })
  const mixed = captureRecord('mixed', { streams: [ofPort(0, 1), ofPort(1, 101), ofPort(4, 1)] })
  assert.throws(
    () => select([mixed], 0n, 5_000n),
    /the capture mixed contains several link types: EN10MB \(port 0, 4\), RAW \(port 1\); .* choose a port with FilterPort/,
  )
})

test('captures with and without a frame check sequence are of one link type', () => {
  const fcs = ofLinkType('fcs', 0x2400_0001)
  assert.equal(select([fcs], 0n, 5_000n).linkType, 0x2400_0001)
  assert.equal(select([fcs, captureRecord('plain')], 0n, 5_000n).linkType, 1)
})

test('an empty selection has the link type of the newest capture that has one, else Ethernet', () => {
  const newest = ofLinkType('raw', 101)
  const empty = captureRecord('empty', { streams: [] })
  assert.equal(select([empty, newest, captureRecord('old')], 9_000n, 9_001n).linkType, 101)
  assert.equal(select([], 0n, 1n).linkType, 1)
})
