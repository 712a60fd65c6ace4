// The checker of regular expressions: it must see the ones that strangers could stop programs with.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expressionsIn, growthOf } from '../.ci/expressions.mjs'

/** Each was in the programs once, and took seconds for a text of 60 kB or less. */
const SLOW = {
  tracestate: String.raw`const a = text.replaceAll(/^[ \t]+|[ \t]+$/g, '')`,
  FilterRE: String.raw`const b = /^\/(.+)\/((?!.*(.).*\3)[ism]*)$/s.exec(filter)`,
  'a header line of a device': String.raw`const c = /([!#$%&'*+.^_|~0-9A-Za-z-]+):[\t ]*([\t\x20-\x7e\x80-\xff]*)(?:\r\n|$)/y`,
  'the Trailer of a device': String.raw`const d = value.split(/[\t ]*,[\t ]*/)`,
}

for (const [what, source] of Object.entries(SLOW)) {
  test(`finds the slow expression for ${what}`, async () => {
    const { literals } = expressionsIn(['planted.ts'], () => source)
    const [literal = ''] = literals.keys()
    assert.match(await growthOf(literal), /polynomial$/)
  })
}

test('finds expressions with their places, and those that are composed when the program runs', () => {
  const source = "const a = /x+/\nconst b = [/y/g, new RegExp(text), RegExp('z')]\n// /not this/\n"
  const { literals, composed } = expressionsIn(['planted.ts'], () => source)
  assert.deepEqual(
    [...literals],
    [
      ['/x+/', ['planted.ts:1']],
      ['/y/g', ['planted.ts:2']],
    ],
  )
  assert.deepEqual([...composed.keys()], ['new RegExp(text)', "RegExp('z')"])
})

test('takes a linear expression for what it is', async () => {
  assert.equal(await growthOf('/^[a-z]+$/'), 'linear')
})
