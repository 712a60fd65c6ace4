import assert from 'node:assert/strict'
import { test } from 'node:test'
import { csvLine } from '../../../src/query/capture-csv.ts'

test('a field with a comma, a quote or a line end is quoted, its quotes doubled', () => {
  assert.equal(csvLine(['plain', 7, 8n, true]), 'plain,7,8,true\n')
  assert.equal(csvLine(['a,b', 'say "hi"', 'two\nlines', 'a\rb']), '"a,b","say ""hi""","two\nlines","a\rb"\n')
})

test('what is not known is an empty field', () => {
  assert.equal(csvLine([undefined, null, '']), ',,\n')
})
