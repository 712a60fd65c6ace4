import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { JsonList } from '../../../../src/gateway/device/device-json.ts'
import { MalformedAnswer } from '../../../../src/gateway/device/response-head.ts'
import { pieces } from '../../../support/devices/raw-device.ts'

function read(text: string, lengths: readonly number[]) {
  const list = new JsonList()
  const entries = [...pieces(Buffer.from(text), lengths)].flatMap((piece) => list.push(Buffer.from(piece)))
  return { entries: entries.map((entry) => JSON.parse(entry)), rest: list.end() }
}

test('finds every entry of any list, however it arrives', () => {
  const member = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.double({ noNaN: true }),
    fc.boolean(),
    fc.constant(null),
  )
  const entry = fc.dictionary(
    fc.string(),
    fc.oneof(member, fc.array(member), fc.dictionary(fc.string(), member)),
  )
  const rest = fc.dictionary(fc.string(), fc.oneof(member, fc.array(fc.oneof(member, fc.array(member)))))
  fc.assert(
    fc.property(
      fc.array(entry),
      rest,
      rest,
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
      fc.constantFrom(undefined, 1),
      (entries, before, after, lengths, space) => {
        const whole = { ...before, List: entries, ...after }
        const text = JSON.stringify({ ...whole, List: entries }, undefined, space)
        const found = read(text, lengths)
        const { List, ...beside } = JSON.parse(text)
        assert.deepEqual(found, { entries: List, rest: beside })
      },
    ),
  )
})

for (const [what, text] of [
  ['nothing', ''],
  ['null', 'null'],
  ['no List', '{"Path":"/"}'],
  ['an object for a list', '{"List":{}}'],
  ['a text for a list', '{"List":"[{}]"}'],
  ['a list of something else', '{"Lists":[{}]}'],
  ['an entry that is null', '{"List":[{"a":1},null]}'],
  ['an entry that is a number', '{"List":[1]}'],
  ['an entry that is a list', '{"List":[[]]}'],
  ['two commas', '{"List":[{},,{}]}'],
  ['no comma', '{"List":[{}{}]}'],
  ['a comma alone', '{"List":[,]}'],
  ['an entry without end', '{"List":[{"a":1'],
  ['a list without end', '{"List":[{}'],
  ['something behind', '{"List":[{}]}{'],
  ['an entry of 20,000 levels', `{"List":[${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}]}`],
  ['20,000 levels beside the list', `{"List":[],"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`],
  ['an entry of a megabyte', `{"List":[{"a":"${'x'.repeat(1_000_000)}"}]}`],
  ['a megabyte beside the list', `{"a":"${'x'.repeat(1_000_000)}","List":[]}`],
] as const) {
  test(`${what} is no list`, () => {
    for (const lengths of [[1], [7], [65_536]]) assert.throws(() => read(text, lengths), MalformedAnswer)
  })
}

test('a member that is only called like the list in a text is no list', () => {
  const text = '{"a":"\\"List\\":[{}]","x\\"List":[1],"b":{"List":[2]},"List":[{"c":"]}"}]}'
  assert.deepEqual(read(text, [1]), {
    entries: [{ c: ']}' }],
    rest: { a: '"List":[{}]', 'x"List': [1], b: { List: [2] } },
  })
})

test('accepts what other manufacturers write: null for an empty list, a trailing comma, a byte order mark', () => {
  for (const lengths of [[1], [1_000]]) {
    assert.deepEqual(read('{"Path":"/","List":null}', lengths), { entries: [], rest: { Path: '/' } })
    assert.deepEqual(read('{"List":[{"a":1}, ],"b":2}', lengths), { entries: [{ a: 1 }], rest: { b: 2 } })
    assert.deepEqual(read('\ufeff{"List":[{"a":1}]}', lengths), { entries: [{ a: 1 }], rest: {} })
  }
})
