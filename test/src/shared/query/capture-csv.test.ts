import assert from 'node:assert/strict'
import { test } from 'node:test'
import { csvLine } from '../../../../src/shared/query/capture-csv.ts'

test('a field with a comma, a quote or a line end is quoted, its quotes doubled', () => {
  assert.equal(csvLine(['plain', 7, 8n, true]), 'plain,7,8,true\n')
  assert.equal(csvLine(['a,b', 'say "hi"', 'two\nlines', 'a\rb']), '"a,b","say ""hi""","two\nlines","a\rb"\n')
})

test('a text that a spreadsheet would calculate begins with an apostrophe, and a number stays as it is', () => {
  for (const text of ['=1+1', '+1+1', '-2+3', '@SUM(A1)', '\tx', '=HYPERLINK("//a","b")', '-', '- -1'])
    assert.ok(csvLine([text]).replace(/^"/, '').startsWith("'"), text)
  assert.equal(csvLine(['\r=1']), '"\'\r=1"\n')
  assert.equal(csvLine(['-5', '+0.25', -7, -8n, 'a=b', '1-2']), '-5,+0.25,-7,-8,a=b,1-2\n')
})

test('what is not known is an empty field', () => {
  assert.equal(csvLine([undefined, null, '']), ',,\n')
})
