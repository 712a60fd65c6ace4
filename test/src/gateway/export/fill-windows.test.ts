// The windows that fill the holes of an export cover each hole exactly once and in order, whatever the holes are.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { firstCheckpoint, isAllOrdered, pieceCount } from '../../../../src/gateway/export/export-pieces.ts'
import type { Checkpoint, ExportWindow, FillBase } from '../../../../src/gateway/export/export-record.ts'
import { firstFilling, keptUpTo, orderFill } from '../../../../src/gateway/export/fill-export.ts'
import { tallied } from '../../../../src/worker/files/tally.ts'
import { storedOrder } from '../../../support/exports/stored-order.ts'

const DEVICES = ['east', 'north', 'west']
const LENGTH = 60
const FAILURE = { code: 'device-unreachable', detail: 'down' } as const

/** What is missing at each instant, for three devices. */
const missing = fc.array(fc.integer({ min: 0, max: 7 }), { minLength: LENGTH, maxLength: LENGTH })

function made(lacks: readonly number[], partNs: number | null) {
  const order = storedOrder({
    id: randomUUID(),
    target: 'local',
    plan: {
      kind: 'timerange',
      query: `TSBegin=0&TSEnd=${LENGTH}&TSUnit=nanos`,
      capturesMax: null,
      forcedFilters: [],
      devices: DEVICES,
    },
    partTimeNs: partNs === null ? null : String(partNs),
  })
  const first = firstCheckpoint(order)
  const devices = first.devices.map((tally, device) => ({
    ...tally,
    holes: lacks.flatMap((mask, at) =>
      (mask & (1 << device)) === 0
        ? []
        : [{ fromNs: String(at), toNs: String(at + 1), final: false, error: FAILURE }],
    ),
  }))
  const base: FillBase = {
    checkpoint: { ...first, devices, fileCount: pieceCount(order) },
    endedMs: 1,
    expiresMs: 2,
    count: 1,
  }
  return { order, base }
}

function windowsOf(
  { order, base }: ReturnType<typeof made>,
  stepNs: number,
): { readonly windows: readonly ExportWindow[]; readonly last: Checkpoint } {
  const windows: ExportWindow[] = []
  let checkpoint = firstFilling(order, base)
  while (!isAllOrdered(order, checkpoint)) {
    checkpoint = { ...checkpoint, measured: { leftOut: [], header: null, stepNs: String(stepNs) } }
    checkpoint = orderFill(order, base, checkpoint)
    windows.push(...checkpoint.ordered)
    checkpoint = { ...checkpoint, ordered: [] }
  }
  return { windows, last: checkpoint }
}

const cases = fc.record({
  lacks: missing,
  partNs: fc.option(fc.integer({ min: 7, max: LENGTH })),
  stepNs: fc.integer({ min: 1, max: LENGTH }),
})

describe('the windows that fill holes', () => {
  test('ask each device for what it lacks, once and in order, and end each piece once', () => {
    fc.assert(
      fc.property(cases, ({ lacks, partNs, stepNs }) => {
        const { windows } = windowsOf(made(lacks, partNs), stepNs)
        const asked = new Array<number>(LENGTH).fill(0)
        let cursor = 0
        for (const { beginNs, endNs, leftOut } of windows) {
          assert.ok(Number(beginNs) >= cursor && Number(endNs) - Number(beginNs) <= stepNs)
          cursor = Number(endNs)
          for (let at = Number(beginNs); at < Number(endNs); at += 1)
            for (const [device, name] of DEVICES.entries())
              if (!leftOut.includes(name)) asked[at] = (asked[at] ?? 0) | (1 << device)
        }
        assert.deepEqual(asked, lacks)
        const pieces = windows.map(({ piece }) => piece)
        const ends = windows.filter(({ endsPiece }) => endsPiece).map(({ piece }) => piece)
        assert.deepEqual(ends, [...new Set(pieces)])
      }),
    )
  })

  test('leave no hole if all arrive, and all of them if none does', () => {
    fc.assert(
      fc.property(cases, fc.boolean(), ({ lacks, partNs, stepNs }, isFilled) => {
        const { order, base } = made(lacks, partNs)
        const { windows, last } = windowsOf({ order, base }, stepNs)
        let after = last
        for (const window of windows) {
          const hole = { fromNs: window.beginNs, toNs: window.endNs, final: false, error: FAILURE }
          const outcome = { file: null, bytes: 0, holes: isFilled ? [] : [hole], fatal: null }
          const came = DEVICES.filter((name) => !window.leftOut.includes(name))
          const joined = { window, inputs: [], came: came.map((device) => ({ device, outcome })) }
          after = { ...after, ...tallied(after, joined) }
        }
        for (const [device, { holes }] of after.devices.entries()) {
          const left = lacks.map((_, at) =>
            holes.some(({ fromNs, toNs }) => Number(fromNs) <= at && at < Number(toNs)),
          )
          assert.deepEqual(
            left,
            lacks.map((mask) => !isFilled && (mask & (1 << device)) !== 0),
          )
        }
      }),
    )
  })

  test('leave a hole that is final, whatever arrives in its time', () => {
    const { base } = made(new Array<number>(LENGTH).fill(0), null)
    const final = { fromNs: '20', toNs: '30', final: true, error: FAILURE } as const
    const devices = base.checkpoint.devices.map((tally) => ({ ...tally, holes: [final] }))
    const window: ExportWindow = {
      index: 0,
      piece: 0,
      beginNs: '0',
      endNs: String(LENGTH),
      isWholePiece: true,
      endsPiece: true,
      header: null,
      leftOut: [],
      isFill: true,
    }
    const outcome = { file: null, bytes: 0, holes: [], fatal: null }
    const joined = { window, inputs: [], came: DEVICES.map((device) => ({ device, outcome })) }
    for (const { holes } of tallied({ ...base.checkpoint, devices }, joined).devices)
      assert.deepEqual(holes, [final])
  })

  test('keep the files of pieces without a hole, in their place', () => {
    const lacks = Array.from({ length: LENGTH }, (_, at) => (at >= 20 && at < 30 ? 1 : 0))
    const { order, base } = made(lacks, 10)
    assert.deepEqual(
      windowsOf({ order, base }, LENGTH).windows.map(({ piece }) => piece),
      [2],
    )
    assert.deepEqual(keptUpTo(order, base, 0, 2), { from: 0, end: 2 })
    assert.deepEqual(keptUpTo(order, base, 3, 6), { from: 3, end: 6 })
  })
})
