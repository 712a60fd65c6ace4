import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { AXIS_PX } from '../../../../src/console/timeline/draw-axis.ts'
import type { Cursor } from '../../../../src/console/timeline/draw-lanes.ts'
import { dragHands, pressKey, type Touched } from '../../../../src/console/timeline/lane-gestures.ts'
import type { TimeView } from '../../../../src/console/timeline/time-view.ts'

const LANE = { device: 'a', captures: [], events: [], sightings: [] }
const ELEMENT = { getBoundingClientRect: () => ({ left: 0, top: 0 }), setPointerCapture: () => undefined }

/** Lanes of 128 px for 1,024 ns, and the effects of gestures on them. */
function lanes() {
  const done: string[] = []
  const spanText = (span: TimeView | undefined) => (span ? `${span.fromNs}-${span.toNs}` : 'none')
  const touched: Touched = {
    view: { fromNs: 10_000n, toNs: 11_024n },
    lanes: [LANE, LANE],
    selection: undefined,
    cursor: undefined,
    widthPx: 128,
    heightPx: 200,
    lanePx: 40,
    scrolledPx: 0,
    onView: (view) => done.push(`view ${spanText(view)}`),
    onDrag: (selection) => done.push(`drag ${spanText(selection)}`),
    onSelect: (selection) => done.push(`select ${spanText(selection)}`),
    onPoint: ({ ns, lane }) => done.push(`point ${ns} ${lane}`),
    onCursor: (cursor) => done.push(cursor ? `cursor ${cursor.ns} ${cursor.lane}` : 'cursor none'),
    onAll: () => done.push('all'),
    onFollow: () => done.push('follow'),
  }
  return { done, touched, hands: dragHands({ current: touched }) }
}

function pointer(clientX: number, more: Readonly<Record<string, unknown>> = {}): PointerEvent {
  return {
    button: 0,
    clientX,
    clientY: AXIS_PX + 41,
    currentTarget: ELEMENT,
    ...more,
  } as unknown as PointerEvent
}

describe('a hand on the lanes', () => {
  test('that drags shows each place, and selects once, when it lets go', () => {
    const { done, hands } = lanes()
    hands.onPointerDown(pointer(20))
    for (const px of [21, 40, 60]) hands.onPointerMove(pointer(px))
    hands.onPointerUp(pointer(70))
    assert.deepEqual(
      done.filter((text) => !text.startsWith('cursor')),
      ['drag none', 'drag 10160-10320', 'drag 10160-10480', 'drag none', 'select 10160-10560'],
    )
  })

  test('that clicks points at a place in a lane, and selects nothing', () => {
    const { done, hands } = lanes()
    hands.onPointerDown(pointer(20))
    hands.onPointerUp(pointer(22))
    assert.deepEqual(done.slice(-2), ['drag none', 'point 10176 1'])
    hands.onPointerDown(pointer(20, { button: 1 }))
    hands.onPointerUp(pointer(20, { button: 1 }))
    assert.equal(done.filter((text) => text.startsWith('point')).length, 1, 'a move is no click')
  })

  test('that drags backwards selects from the earlier end', () => {
    const { done, hands } = lanes()
    hands.onPointerDown(pointer(70))
    hands.onPointerUp(pointer(20))
    assert.equal(done.at(-1), 'select 10160-10560')
  })

  test('that trembles, or that the browser takes to scroll, selects nothing', () => {
    const { done, hands } = lanes()
    hands.onPointerDown(pointer(20))
    hands.onPointerUp(pointer(21))
    hands.onPointerDown(pointer(20))
    hands.onPointerMove(pointer(60))
    hands.onPointerCancel()
    hands.onPointerUp(pointer(60))
    assert.deepEqual(
      done.filter((text) => text.startsWith('select')),
      [],
    )
    assert.equal(done.at(-1), 'drag none')
  })

  test('that drags with Alt moves what is shown', () => {
    const { done, hands } = lanes()
    hands.onPointerDown(pointer(20, { altKey: true }))
    hands.onPointerMove(pointer(30))
    hands.onPointerUp(pointer(30))
    assert.ok(done.includes('view 9920-10944'))
    assert.ok(!done.some((text) => text.startsWith('select')))
  })

  test('that points is in a lane, on the axis, or below the lanes', () => {
    const { done, hands } = lanes()
    for (const clientY of [AXIS_PX + 41, AXIS_PX - 1, AXIS_PX + 80])
      hands.onPointerMove(pointer(50, { clientY }))
    hands.onPointerLeave(pointer(50, { pointerType: 'touch' }))
    assert.notEqual(done.at(-1), 'cursor none')
    hands.onPointerLeave(pointer(50))
    assert.deepEqual(done, [
      'cursor 10400 1',
      'cursor 10400 undefined',
      'cursor 10400 undefined',
      'cursor none',
    ])
  })
})

describe('keys on the lanes', () => {
  const press = (key: string, more: Partial<Touched> = {}): readonly string[] => {
    const { done, touched } = lanes()
    pressKey({ key, preventDefault: () => undefined } as KeyboardEvent, { ...touched, ...more })
    return done
  }
  const cursor: Cursor = { ns: 11_010n, lane: 1, isByKeys: true }

  test('move the cursor in time and between lanes, and what is shown goes along', () => {
    assert.deepEqual(press('ArrowRight'), ['cursor 10532 0'])
    assert.deepEqual(press('ArrowRight', { cursor }), ['cursor 11030 1', 'view 10020-11044'])
    assert.deepEqual(press('ArrowUp', { cursor }), ['cursor 11010 0'])
    assert.deepEqual(press('ArrowDown', { cursor }), ['cursor 11010 1'])
  })

  test('mark the start, then the end', () => {
    assert.deepEqual(press('Enter', { cursor }), ['cursor 11010 1', 'select 11010-11010'])
    const selection = { fromNs: 10_500n, toNs: 10_500n }
    assert.deepEqual(press('Enter', { cursor, selection }), ['cursor 11010 1', 'select 10500-11010'])
    assert.deepEqual(press('Escape'), ['select none'])
  })
})
