import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placeOfMistake } from '../../../../src/console/download/mistake-place.ts'

const place = (typed: string, message: string, position?: number) =>
  placeOfMistake(typed, { message, position })

test('the position given by the device is used', () => {
  assert.equal(place("a 'b' c", "unknown port 'b'", 6), 6)
})

test('a word quoted in the message is found where it occurs', () => {
  assert.equal(place('tcp port foo', "FilterBPF does not compile: unknown port 'foo'"), 9)
  assert.equal(
    place("port 'a' or port foo", `FilterBPF "port 'a' or port foo" does not compile: unknown port 'foo'`),
    17,
  )
  assert.equal(place('host 1.2.3.400 or foo', "invalid IPv4 address '1.2.3.400'"), 5)
})

test('nothing is guessed: neither for a syntax error, nor if the word occurs twice or not at all', () => {
  assert.equal(place('tcp prt 80', "can't parse filter expression: syntax error"), undefined)
  assert.equal(place('port foo or host foo', "unknown host 'foo'"), undefined)
  assert.equal(place('port bar', "unknown port 'foo'"), undefined)
})
