import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { parseQueryString } from '../../../../src/shared/query/parse-query-string.ts'

const entries = (raw: string): [string, string][] => [...parseQueryString(raw)]

test('decodes names and values, and + as a space', () => {
  assert.deepEqual(entries('a=1&b=tcp+port+80&c=%2B%26%3D&d%20e=%C3%A9'), [
    ['a', '1'],
    ['b', 'tcp port 80'],
    ['c', '+&='],
    ['d e', 'é'],
  ])
})

test('skips empty pairs and takes a name without = as empty', () => {
  assert.deepEqual(entries('&&a=1&&&b&'), [
    ['a', '1'],
    ['b', ''],
  ])
  assert.deepEqual(entries(''), [])
})

test('keeps = in a value', () => {
  assert.deepEqual(entries('f=ip[0]==4'), [['f', 'ip[0]==4']])
})

test('a list of addresses may be given in parts', () => {
  assert.deepEqual(entries('Address=10.1.2.3&a=1&Address=10.1.2.4%2C+10.1.2.5'), [
    ['Address', '10.1.2.3\n10.1.2.4, 10.1.2.5'],
    ['a', '1'],
  ])
})

const broken: readonly [string, string, string][] = [
  ['a name given twice', 'a=1&b=2&a=1', 'a'],
  ['a name given twice in two spellings', 'ab=1&%61b=1', 'ab'],
  ['a cut percent sequence', 'a=%4', 'a'],
  ['a percent sign before no digits', 'a=100%zz', 'a'],
  ['bytes that are no UTF-8', 'a=%ff%fe', 'a'],
  ['an overlong UTF-8 form', 'a=%c0%af', 'a'],
  ['a value without a name', '=1', ''],
  ['65 parameters', Array.from({ length: 65 }, (_, i) => `p${i}=1`).join('&'), 'p64'],
]
for (const [what, raw, param] of broken) {
  test(`refuses ${what}`, () => {
    assert.throws(
      () => parseQueryString(raw),
      (error) =>
        error instanceof CapfleetError && error.code === 'bad-parameter' && error.details.param === param,
    )
  })
}
