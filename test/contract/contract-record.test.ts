// A sentence of the API without a row is detected, and so are a row without a sentence and a changed document.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { checksOn } from './check-claim.ts'
import { ROUTES } from './claim.ts'
import { CLAIMS } from './claims.ts'
import { CLAIM_IDS, DOCUMENTS, type Document, digestsOf, isThere } from './documents.ts'

/** Differences between the record and the rows. */
function missing(ids: readonly string[], rows: readonly string[]): string[] {
  return [
    ...ids.filter((id) => !rows.includes(id)).map((id) => `${id} has no row`),
    ...rows.filter((id) => !ids.includes(id)).map((id) => `${id} is in no section of documents.ts`),
    ...rows.filter((id, index) => rows.indexOf(id) !== index).map((id) => `${id} has two rows`),
  ]
}

/** Sections whose text differs from the recorded one, with the rows to check again. */
function changed(document: Document, digests: Readonly<Record<string, string>>): string[] {
  const { file, prefix, sections } = document
  const names = new Set([...Object.keys(sections), ...Object.keys(digests)])
  return [...names]
    .filter((name) => sections[name]?.digest !== digests[name])
    .map((name) => {
      const { claims = 0 } = sections[name] ?? {}
      const rows =
        claims === 0 ? 'it has no row' : `walk ${prefix}${name}-1 to ${prefix}${name}-${claims} again`
      return `section ${name} of ${file} is another one now (${digests[name] ?? 'gone'}): ${rows}, then note the digest in documents.ts`
    })
}

test('every claim of the record has one row, and every row is in the record', () => {
  assert.deepEqual(
    missing(
      CLAIM_IDS,
      CLAIMS.map(({ id }) => id),
    ),
    [],
  )
})

test('a row that is missing, strange or there twice is seen', () => {
  assert.deepEqual(missing(['1-1', '1-2'], ['1-1', '1-3', '1-1']), [
    '1-2 has no row',
    '1-3 is in no section of documents.ts',
    '1-1 has two rows',
  ])
})

test('every row has a check, a test elsewhere, or says why it has none', () => {
  for (const { id, claim, checks, elsewhere, notChecked } of CLAIMS) {
    assert.match(claim, /^.{10,}\.$/s, `${id} is a sentence`)
    assert.ok(checks.length > 0 || elsewhere !== undefined || notChecked !== undefined, `${id} has no check`)
    assert.ok(
      notChecked === undefined || (checks.length === 0 && notChecked.length > 10),
      `${id} gives a reason`,
    )
  }
})

test('every route that a check leaves out is left out for a reason', () => {
  for (const { id, checks } of CLAIMS) {
    for (const { out = {} } of checks) {
      assert.ok(Object.keys(out).length < ROUTES.length, `${id} is checked on no route`)
      for (const reason of Object.values(out)) assert.ok(reason.length > 10, `${id}: ${reason}`)
    }
  }
})

test('tests elsewhere are there', () => {
  for (const { id, elsewhere } of CLAIMS) {
    if (elsewhere === undefined) continue
    const text = readFileSync(join(REPOSITORY_ROOT, elsewhere.file), 'utf8')
    assert.ok(
      text.includes(`'${elsewhere.title}'`),
      `${id}: ${elsewhere.file} has a test "${elsewhere.title}"`,
    )
  }
})

test('the table in numbers', (t) => {
  for (const route of ROUTES) {
    const rows = CLAIMS.filter((claim) => checksOn(claim, route).length > 0)
    const checks = rows.reduce((sum, claim) => sum + checksOn(claim, route).length, 0)
    t.diagnostic(`${route}: ${rows.length} rows, ${checks} checks`)
  }
  for (const { id, notChecked } of CLAIMS)
    if (notChecked !== undefined) t.diagnostic(`${id} is not checked: ${notChecked}`)
  assert.ok(CLAIMS.filter(({ notChecked }) => notChecked !== undefined).length < CLAIMS.length / 10)
})

for (const document of DOCUMENTS.filter(isThere)) {
  test(`${document.file} is the one that was walked`, () => {
    assert.deepEqual(changed(document, digestsOf(document)), [])
  })
}

test('a changed, a new and a lost section are seen', () => {
  const document = {
    file: 'x.md',
    prefix: 'X',
    sections: { 1: { claims: 2, digest: 'a' }, 2: { claims: 0, digest: 'b' } },
  }
  const tail = 'then note the digest in documents.ts'
  assert.deepEqual(changed(document, { 1: 'c', 3: 'd' }), [
    `section 1 of x.md is another one now (c): walk X1-1 to X1-2 again, ${tail}`,
    `section 2 of x.md is another one now (gone): it has no row, ${tail}`,
    `section 3 of x.md is another one now (d): it has no row, ${tail}`,
  ])
})
