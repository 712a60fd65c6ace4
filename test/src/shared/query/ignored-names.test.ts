import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ignoredNames, parseIgnoredNames } from '../../../../src/shared/query/ignored-names.ts'

test('names are reported as header text, long ones truncated, and no more of them than a header may have', () => {
  assert.equal(ignoredNames(['foo', 'bé']), 'foo, b%C3%A9')
  assert.equal(ignoredNames(['x'.repeat(64)]), 'x'.repeat(64))
  assert.equal(ignoredNames(['x'.repeat(17_000)]), `${'x'.repeat(64)}...`)
  assert.ok(ignoredNames(['\u{1f4a9}'.repeat(100), 'b']).length <= 1_024)
  const many = ignoredNames(Array.from({ length: 64 }, (_, index) => `${index}`.padStart(60, 'n')))
  assert.ok(many.length <= 1_024 && many.endsWith(', ...'), many)
  assert.equal(ignoredNames(['\u{1f4a9}'.repeat(200)]).includes('%F0%9F%92%A9'), true)
})

test('reported names are passed on unchanged, and nothing of malformed ones', () => {
  const names = ['foo', 'b\u00e9, c', 'x'.repeat(17_000), '\u{1f4a9}'.repeat(200)]
  const told = ignoredNames(names)
  assert.equal(ignoredNames(parseIgnoredNames(told)), told)
  assert.deepEqual(parseIgnoredNames('foo, %zz'), ['foo', '%zz'])
  for (const header of [undefined, '', 'a b', 'a,b', 'a, ', 'a\r\nb', 'x'.repeat(1_025)])
    assert.deepEqual(parseIgnoredNames(header), [])
})
