// The windows of an export cover its range exactly once, and its files are named after their times.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type ExportOrder, isDivisible, orderedQuery } from '../../../../src/gateway/export/export-order.ts'
import {
  firstCheckpoint,
  isAllOrdered,
  orderWindow,
  pieceCount,
  pieceQuery,
  resultName,
} from '../../../../src/gateway/export/export-pieces.ts'
import type { ExportWindow } from '../../../../src/gateway/export/export-record.ts'

function orderOf(
  query: string,
  more: Partial<ExportOrder> = {},
  kind: 'timerange' | 'single' = 'timerange',
): ExportOrder {
  return {
    id: '00000000-0000-4000-8000-000000000000',
    user: 'ann',
    createdMs: 0,
    plan: { kind, query, capturesMax: null, forcedFilters: [], devices: ['east', 'west'] },
    align: false,
    partTimeNs: null,
    partBytes: null,
    target: 'local',
    onMissing: 'fail',
    reason: null,
    scheduleId: null,
    ...more,
  }
}

const HEADER = { linkType: 1, snaplen: 262_144, nanoseconds: true }

function windowsOf(order: ExportOrder, stepNs: bigint): readonly ExportWindow[] {
  const windows: ExportWindow[] = []
  let checkpoint = firstCheckpoint(order)
  while (!isAllOrdered(order, checkpoint)) {
    checkpoint = { ...checkpoint, measured: { leftOut: [], header: HEADER, stepNs: String(stepNs) } }
    checkpoint = orderWindow(order, checkpoint)
    windows.push(...checkpoint.ordered)
    checkpoint = { ...checkpoint, ordered: [] }
  }
  return windows
}

describe('the time of an export', () => {
  test('is covered once by its windows, in order, and each piece ends with one', () => {
    const range = fc.tuple(fc.bigInt(0n, 10n ** 6n), fc.bigInt(1n, 10n ** 6n))
    const cuts = fc.tuple(fc.option(fc.bigInt(50_000n, 2_000_000n)), fc.bigInt(10_000n, 3_000_000n))
    fc.assert(
      fc.property(range, cuts, ([begin, length], [part, step]) => {
        const order = orderOf(`TSBegin=${begin}&TSEnd=${begin + length}&TSUnit=nanos`, {
          partTimeNs: part === null ? null : String(part),
        })
        const windows = windowsOf(order, step)
        let at = begin
        for (const [index, window] of windows.entries()) {
          assert.deepEqual([window.index, window.beginNs], [index, String(at)])
          at = BigInt(window.endNs)
          assert.equal(window.endsPiece, at === pieceQuery(order, window.piece).endNs)
        }
        assert.equal(at, begin + length)
        assert.equal(windows.filter(({ endsPiece }) => endsPiece).length, pieceCount(order))
      }),
    )
  })

  test('an empty one is a window all the same', () => {
    assert.equal(windowsOf(orderOf('TSBegin=5&TSEnd=5&TSUnit=nanos'), 0n).length, 1)
  })

  test('a file is called as a direct download of its time is', () => {
    const order = orderOf(
      'TSBegin=1000000000000000000&TSEnd=1000000007200000000&TSUnit=nanos&Compression=zstd',
      {
        partTimeNs: '3600000000',
      },
    )
    assert.equal(pieceCount(order), 2)
    assert.equal(resultName(order, 1, 2), 'fleet_20010909T014643.600Z-20010909T014647.200Z.pcap.zst')
    const cut = { ...order, partTimeNs: null, partBytes: '1048576' }
    assert.equal(resultName(cut, 0, 12), 'fleet_20010909T014640Z-20010909T014647.200Z_part0012.pcap.zst')
    const one = orderOf('StreamName=lan_20261102_0900', {}, 'single')
    assert.equal(resultName(one, 0, 1), 'lan_20261102_0900.pcap')
  })

  test('is not cut where packets of both sides belong together', () => {
    const range = 'TSBegin=1&TSEnd=9&TSUnit=nanos'
    const divisible = (order: ExportOrder) => isDivisible(order, orderedQuery(order))
    assert.equal(divisible(orderOf(range)), true)
    assert.equal(
      divisible(orderOf(`${range}&FilterBPF=tcp&Slice=64&TSResolution=usec&Compression=best`)),
      true,
    )
    for (const more of ['Dedup=5', 'MaxPackets=3', 'MaxBytes=100', 'TSMax=5', 'TSMode=vendorA7130'])
      assert.equal(divisible(orderOf(`${range}&${more}`)), false, more)
    assert.equal(divisible(orderOf('TSBegin=20261102_090000&TSEnd=20261102_100000')), false)
    assert.equal(divisible(orderOf('StreamName=lan', {}, 'single')), false)
    assert.equal(divisible(orderOf(range, { align: true })), false)
  })
})
