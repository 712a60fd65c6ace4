import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { TOUR_QUESTIONS } from '../../../../src/console/tour/tour-questions.ts'
import { headingsOf } from '../../../support/documents/markdown.ts'
import { REPOSITORY_ROOT } from '../../../support/repository-files.ts'

const page = readFileSync(join(REPOSITORY_ROOT, 'docs/get-started/demo.md'), 'utf8')

test('the documentation has the same questions in the same order, with their filters', () => {
  const headings = headingsOf(page)
  assert.deepEqual(
    headings.slice(headings.indexOf('Five questions') + 1),
    TOUR_QUESTIONS.map(({ question }) => question),
  )
  const filters = TOUR_QUESTIONS.flatMap(({ filter }) => (filter === undefined ? [] : [filter]))
  assert.equal(filters.length, 4)
  for (const filter of filters) assert.ok(page.includes(`'FilterBPF=${filter}'`), filter)
})
