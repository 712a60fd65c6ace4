import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DOWNLOAD_TABLES } from '../../../../../src/shared/query/download/parse-download-query.ts'
import type { Parameter } from '../../../../../src/shared/query/query-parameters.ts'
import { COMMON_PARAMETERS } from '../../../../../src/shared/query/read-parameters.ts'

const rows = [...DOWNLOAD_TABLES.fleet, COMMON_PARAMETERS].flatMap((table): Parameter[] =>
  Object.values(table),
)

test('every parameter has one row', () => {
  const names = rows.map(({ name }) => name)
  assert.ok(names.length > 30)
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  )
})

test('every row says in a sentence what its parameter does', () => {
  for (const { name, says } of rows) assert.match(says, /^["A-Z].*\.$/s, name)
})

test('every default and example is read as what it says', () => {
  for (const row of rows) {
    const { name, type, example } = row
    const read = (text: string) => type.read(text, name, { kind: 'timerange' })
    if (row.default !== undefined && type.write(row.default) !== '')
      assert.deepEqual(read(type.write(row.default)), row.default, name)
    if (example !== undefined) assert.notEqual(read(example), undefined, name)
  }
})

test('what a row calls an integer is refused one beyond its bounds', () => {
  const integers = rows.filter(({ type }) => type.schema.type === 'integer')
  assert.ok(integers.length > 5)
  for (const { name, type } of integers) {
    const { minimum = 0n, maximum = 0n } = type.schema
    for (const inside of [minimum, maximum])
      assert.equal(type.write(type.read(String(inside), name, {})), String(inside))
    for (const outside of [minimum - 1n, maximum + 1n])
      assert.throws(() => type.read(String(outside), name, {}), { code: 'bad-parameter' })
  }
})
