import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import {
  type FrameCondition,
  formatFrameFilter,
  parseFrameFilter,
} from '../../../../../src/shared/query/filter/frame-filter.ts'

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))

test('reads the documented forms', () => {
  assert.deepEqual(parseFrameFilter('a7130.srcport=1,2,10'), [
    { field: 'a7130.srcport', op: '==', values: [1, 2, 10] },
  ])
  assert.deepEqual(parseFrameFilter('a7130.device==54931 and a7130.srcport!=3 and c3550.srcport = 48'), [
    { field: 'a7130.device', op: '==', values: [54_931] },
    { field: 'a7130.srcport', op: '!=', values: [3] },
    { field: 'c3550.srcport', op: '==', values: [48] },
  ])
  assert.deepEqual(parseFrameFilter('a7130.srcdevice!=0'), [
    { field: 'a7130.srcdevice', op: '!=', values: [0] },
  ])
})

test('white space is free, "and" may be in capitals, integers may end in ULL', () => {
  const plain = parseFrameFilter('capture.port==1,2 and a7130.srcport!=3')
  for (const text of [
    ' capture.port == 1 , 2  AND a7130.srcport != 3 ',
    'capture.port=1,2 And\ta7130.srcport!=3ULL',
    'capture.port==1,2and a7130.srcport!=3',
    formatFrameFilter(plain),
  ]) {
    assert.deepEqual(parseFrameFilter(text), plain, text)
  }
})

test('white space alone has no condition', () => {
  assert.deepEqual([parseFrameFilter(''), parseFrameFilter('  \t')], [[], []])
})

const WRONG: readonly [text: string, position: number, expected: RegExp][] = [
  ['port==1', 0, /one of capture\.port, a7130\.device/],
  ['capture.ports==1', 0, /one of capture\.port/],
  ['constructor==1', 0, /one of capture\.port/],
  ['capture.port', 12, /==, = or !=.*got the end/],
  ['capture.port<1', 12, /==, = or !=/],
  ['capture.port===1', 14, /integer from 0 to 255/],
  ['capture.port==', 14, /integer from 0 to 255 for capture\.port, got the end/],
  ['capture.port==x', 14, /got "x"/],
  ['capture.port==256', 14, /integer from 0 to 255/],
  ['capture.port==-1', 14, /integer from 0 to 255/],
  ['a7130.device==65536', 14, /integer from 0 to 65535/],
  ['a7130.device==99999999999999999999999', 14, /integer from 0 to 65535/],
  ['capture.port==1,', 16, /integer/],
  ['capture.port==1,,2', 16, /integer/],
  ['capture.port==1 2', 16, /"and", a comma or the end/],
  ['capture.port==1 or capture.port==2', 16, /"and"/],
  ['capture.port==1 && capture.port==2', 16, /"and"/],
  ['capture.port==1 and', 19, /one of capture\.port.*got the end/],
  ['capture.port==1 andcapture.port==2', 16, /"and"/],
  ['and capture.port==1', 0, /one of capture\.port/],
  ['capture.port==0x1', 15, /"and"/],
  ['capture.port==1\u0000', 15, /"and"/],
  ['x'.repeat(5_000), 4_096, /more than 4096 characters/],
]
for (const [text, position, expected] of WRONG) {
  test(`refuses ${text.slice(0, 40)}, pointing at character ${position}`, () => {
    assert.throws(
      () => parseFrameFilter(text),
      (error) => {
        assert.ok(error instanceof CapfleetError)
        assert.equal(error.code, 'bad-frame-filter')
        assert.deepEqual([error.details.param, error.details.position], ['FilterFrame', position])
        assert.match(error.message, expected)
        return true
      },
    )
  })
}

const LIMITS = {
  'capture.port': 255,
  'a7130.device': 65_535,
  'a7130.srcdevice': 65_535,
  'a7130.srcport': 255,
  'c3550.srcport': 255,
} as const
const conditions: fc.Arbitrary<FrameCondition> = fc
  .constantFrom(...(Object.keys(LIMITS) as (keyof typeof LIMITS)[]))
  .chain((field) =>
    fc.record({
      field: fc.constant(field),
      op: fc.constantFrom('==' as const, '!=' as const),
      values: fc.array(fc.integer({ min: 0, max: LIMITS[field] }), { minLength: 1, maxLength: 20 }),
    }),
  )
  .map((condition) => ({ ...condition }))

test(`parse, print, parse gives the same conditions (SEED=${SEED})`, () => {
  fc.assert(
    fc.property(fc.array(conditions, { maxLength: 12 }), (list) => {
      const text = formatFrameFilter(list)
      assert.deepEqual(parseFrameFilter(text), list)
      assert.equal(formatFrameFilter(parseFrameFilter(text)), text)
    }),
    { numRuns: 2_000, seed: SEED },
  )
})

test(`any text is read or refused with a position inside it (SEED=${SEED})`, () => {
  const pieces = fc.constantFrom(
    'capture.port',
    'a7130.device',
    '==',
    '=',
    '!=',
    '1',
    ',',
    ' and ',
    ' ',
    'or',
    '9999',
  )
  const conditionTexts = fc.array(conditions, { minLength: 1, maxLength: 4 }).map(formatFrameFilter)
  // A whole text, or one with some of its characters replaced by a random piece.
  const nearTexts = fc
    .tuple(conditionTexts, fc.nat(60), fc.nat(3), fc.oneof(fc.constant(''), pieces))
    .map(([text, at, length, piece]) => text.slice(0, at) + piece + text.slice(at + length))
  const texts = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.array(pieces, { maxLength: 12 }).map((list) => list.join('')),
    nearTexts,
  )
  let accepted = 0
  let refused = 0
  fc.assert(
    fc.property(texts, (text) => {
      try {
        parseFrameFilter(text)
        accepted += 1
      } catch (error) {
        assert.ok(error instanceof CapfleetError && error.code === 'bad-frame-filter', String(error))
        const { position } = error.details
        assert.ok(position !== undefined && position >= 0 && position <= text.length)
        refused += 1
      }
    }),
    { numRuns: 5_000, seed: SEED },
  )
  assert.ok(accepted > 100 && refused > 100, `${accepted} accepted, ${refused} refused`)
})
