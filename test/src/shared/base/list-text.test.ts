import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failuresText, listText } from '../../../../src/shared/base/list-text.ts'

test('a sentence names a few devices, and counts the others', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `d${index}`)
  assert.equal(listText([]), '')
  assert.equal(listText(names(4)), 'd0, d1, d2, d3')
  assert.equal(listText(names(5)), 'd0, d1, d2, d3 and 1 more')
  assert.equal(listText(names(500), '; '), 'd0; d1; d2; d3 and 496 more')
})

test('failures of devices name them, equal ones together', () => {
  const failures = [
    { device: 'lon1', message: 'lab is running; stop it first' },
    { device: 'nyc1', message: 'device nyc1 cannot be reached' },
    { device: 'sgp1', message: 'lab is running; stop it first' },
  ]
  assert.equal(
    failuresText(failures),
    'lon1, sgp1: lab is running; stop it first; device nyc1 cannot be reached',
  )
  assert.equal(failuresText(failures.slice(0, 1)), 'lon1: lab is running; stop it first')
  const many = Array.from({ length: 500 }, (_, index) => ({ device: `d${index}`, message: 'no' }))
  assert.equal(failuresText(many), 'd0, d1, d2, d3 and 496 more: no')
})
