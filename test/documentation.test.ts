// The pages of docs: nothing of the former reference is lost, each page is listed, and each link leads somewhere.
import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, test } from 'node:test'
import { SECTIONS } from '../docs/.vitepress/sections.ts'
import { HELP_PAGES } from '../src/console/base/help-pages.ts'
import { FORMER_SECTIONS, FORMER_TABLES } from './support/documents/former-reference.ts'
import { anchorOf, headingsOf, linksOf, withoutCode } from './support/documents/markdown.ts'
import { REPOSITORY_ROOT, repositoryFiles } from './support/repository-files.ts'

const files = new Set(repositoryFiles())
const documents = new Map(
  [...files]
    .filter((path) => path.endsWith('.md') && !path.startsWith('test/'))
    .map((path) => [path, readFileSync(join(REPOSITORY_ROOT, path), 'utf8')] as const),
)
const pages = [...documents].filter(([path]) => path.startsWith('docs/'))

describe('nothing of the former reference is lost', () => {
  for (const [former, page, heading] of FORMER_SECTIONS)
    test(`"${former}" is in ${page}`, () => {
      const text = documents.get(`docs/${page}`) ?? ''
      assert.ok(headingsOf(text).includes(heading), `docs/${page} has no heading "${heading}"`)
    })

  for (const [head, rows] of FORMER_TABLES)
    test(`a table has the columns ${head} and at least ${rows} rows`, () => {
      const sizes = pages.flatMap(([, text]) => tablesOf(text).filter((one) => one.head === head))
      assert.ok(
        sizes.some((one) => one.rows >= rows),
        `${sizes.map((one) => one.rows).join(', ')} rows`,
      )
    })
})

function tablesOf(text: string): { readonly head: string; readonly rows: number }[] {
  const found = withoutCode(text).matchAll(/^(\|.*\|)\n\|(?:---\|)+\n((?:\|.*\n)*)/gm)
  return [...found].map(([, head = '', rows = '']) => ({ head, rows: rows.split('\n').length - 1 }))
}

test('the site lists each page once, by its heading', () => {
  const listed = SECTIONS.flatMap(({ pages: entries }) => entries)
  const paths = listed.map(([, path]) => `docs/${path}.md`)
  const others = pages.map(([path]) => path).filter((path) => path !== 'docs/index.md')
  assert.deepEqual(paths.toSorted(), others.toSorted())
  for (const [title, path] of listed)
    assert.equal(headingsOf(documents.get(`docs/${path}.md`) ?? '')[0], title, path)
})

test('the first page links to every other one', () => {
  const linked = linksOf(documents.get('docs/index.md') ?? '').map((link) => `docs/${link}`)
  const others = pages.map(([path]) => path).filter((path) => path !== 'docs/index.md')
  assert.deepEqual(
    others.filter((path) => !linked.includes(path)),
    [],
  )
})

test('every link leads to a file, and to a heading of it', () => {
  const broken = [...documents].flatMap(([path, text]) =>
    linksOf(text)
      .filter((link) => !/^[a-z]+:/.test(link) && !leads(path, link))
      .map((link) => `${path}: ${link}`),
  )
  assert.deepEqual(broken, [])
})

test('the help of each view of the page leads to a page of the site', () => {
  const broken = Object.values(HELP_PAGES).filter(
    (address) => !leads('index.md', address.replace('.html', '.md')),
  )
  assert.deepEqual(broken, [])
})

test('README.md has at most 120 lines, and its picture at most 200 kB', () => {
  assert.ok((documents.get('README.md') ?? '').trimEnd().split('\n').length <= 120)
  assert.ok(statSync(join(REPOSITORY_ROOT, 'docs/images/page.png')).size <= 200_000)
})

function leads(from: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? from : normalize(join(dirname(from), path))
  const isThere = files.has(target) || [...files].some((file) => file.startsWith(`${target}/`))
  if (anchor === undefined || !isThere) return isThere
  return headingsOf(documents.get(target) ?? '').some((heading) => anchorOf(heading) === anchor)
}

test('pages begin with their title, and no level is left out', () => {
  for (const [path, text] of documents) {
    const levels = [...withoutCode(text).matchAll(/^(#+) /gm)].map(([, marks = '']) => marks.length)
    assert.equal(levels[0], 1, `${path} begins with a heading of the first level`)
    assert.equal(levels.filter((level) => level === 1).length, 1, `${path} has one title`)
    const jumps = levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1)
    assert.deepEqual(jumps, [], path)
    const headings = headingsOf(text)
    const twice = headings.filter((heading, index) => headings.indexOf(heading) !== index)
    if (path.startsWith('docs/')) assert.deepEqual(twice, [], path)
  }
})

describe('a planted mistake is seen', () => {
  test('a link to a page or a heading that is not there', () => {
    assert.ok(leads('docs/index.md', 'guides/tls.md#certificates'))
    for (const link of ['guides/gone.md', 'guides/tls.md#gone', '#gone', '../docs/gone/'])
      assert.ok(!leads('docs/index.md', link), link)
  })

  test('a table that has lost a row', () => {
    const text = '| A | B |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n```\n| A | B |\n|---|---|\n```\n'
    assert.deepEqual(tablesOf(text), [{ head: '| A | B |', rows: 2 }])
  })
})
