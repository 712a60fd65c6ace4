import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldAt, shownFields } from '../../../../src/console/dissection/shown-fields.ts'
import type { TreeField } from '../../../../src/dissector/messages.ts'

function field(label: string, start: number, length: number, fields: readonly TreeField[] = []): TreeField {
  return {
    label: `${label}: value`,
    filter: `${label} == 1`,
    source: 0,
    start,
    length,
    packet: undefined,
    fields,
  }
}

const FIELDS = [
  field('eth', 0, 14, [field('eth.dst', 0, 6), field('eth.src', 6, 6)]),
  field('ip', 14, 20, [field('ip.flags', 20, 1, [field('ip.flags.df', 20, 1)])]),
]

test('only fields in opened ones are shown, with their levels', () => {
  const shown = shownFields(FIELDS, new Set(['/ip', '/ip/ip.flags', '/eth/eth.dst']))
  assert.deepEqual(
    shown.map(({ field: { label }, level, parent }) => [label, level, parent]),
    [
      ['eth: value', 1, undefined],
      ['ip: value', 1, undefined],
      ['ip.flags: value', 2, 1],
      ['ip.flags.df: value', 3, 2],
    ],
  )
})

test('a byte has the innermost field that was read from it', () => {
  const found = fieldAt(FIELDS, { source: 0, at: 20 })
  assert.equal(found?.field.label, 'ip.flags.df: value')
  assert.deepEqual(found?.open, ['/ip', '/ip/ip.flags'])
  assert.equal(fieldAt(FIELDS, { source: 0, at: 13 })?.field.label, 'eth: value')
  assert.equal(fieldAt(FIELDS, { source: 1, at: 13 }), undefined)
  assert.equal(fieldAt(FIELDS, { source: 0, at: 34 }), undefined)
})
