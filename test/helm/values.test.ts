/**
 * The table of values in helm/README.md is made from the comments in values.yaml, and the schema has exactly the keys
 * of values.yaml. `npm run reference` writes the table.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { CHART } from '../support/helm/chart.ts'
import { describedValues, valueTable } from '../support/helm/value-table.ts'

const README = join(CHART, 'README.md')

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
}

const values = await readFile(join(CHART, 'values.yaml'), 'utf8')
const schema: Schema & { readonly $defs: Readonly<Record<string, Schema>> } = JSON.parse(
  await readFile(join(CHART, 'values.schema.json'), 'utf8'),
)

/** Documents of the programs, which the programs check; the schema has only the parts of them that the chart reads. */
const DOCUMENTS: ReadonlySet<string> = new Set(['config', 'appliance.config'])

/** The part of the schema at a path, with references resolved. */
function resolved({ $ref, ...own }: Schema): Schema {
  return $ref === undefined ? own : (schema.$defs[$ref.replace('#/$defs/', '')] ?? own)
}

/** Paths of all properties, and of the objects among them that accept any key. */
function walk(node: Schema, path = ''): { readonly known: string[]; readonly open: string[] } {
  const { properties, additionalProperties, items } = DOCUMENTS.has(path) ? {} : resolved(node)
  if (items !== undefined) return walk(items, `${path}[]`)
  if (properties === undefined) return { known: [], open: [] }
  const below = Object.entries(properties).map(([key, child]) => {
    const name = path === '' ? key : `${path}.${key}`
    const { known, open } = walk(child, name)
    return { known: [name, ...known], open }
  })
  return {
    known: below.flatMap(({ known }) => known),
    open: [...below.flatMap(({ open }) => open), ...(additionalProperties === false ? [] : [path])],
  }
}

/** Helm gives this value to all charts. */
const OF_HELM = 'global'

test('helm/README.md has every value with its default', async () => {
  const text = await readFile(README, 'utf8')
  const made = text.replace(
    /(<!-- table: values -->\n)[\s\S]*?(<!-- end of table -->)/,
    (_, begin: string, end: string) => `${begin}\n${valueTable(values)}\n\n${end}`,
  )
  assert.ok(made.includes('| `gateway.replicas` | `3` |'))
  if (process.env.REFERENCE === 'write') await writeFile(README, made)
  else assert.ok(made === text, 'the table is not what values.yaml says; write it by `npm run reference`')
})

test('every value has a comment', () => {
  const described = new Set(describedValues(values).map(({ path }) => path))
  const isDescribed = (path: string): boolean =>
    described.has(path) || (path.includes('.') && isDescribed(path.slice(0, path.lastIndexOf('.'))))
  const leaves = leavesOf(parse(values))
  assert.ok(leaves.length > 80)
  assert.deepEqual(
    leaves.filter((path) => !isDescribed(path)),
    [],
  )
})

test('the schema knows every value, and refuses other keys at each level', () => {
  const { known, open } = walk(schema)
  assert.deepEqual(open, [])
  const named = new Set(known)
  const described = describedValues(values).map(({ path }) => path)
  assert.deepEqual(
    described.filter((path) => !named.has(path)),
    [],
  )
})

test('every key of the schema is a value with a default', () => {
  const given = parse(values) as Record<string, unknown>
  const has = (path: string): boolean => {
    let place: unknown = given
    for (const key of path.split('.')) {
      if (typeof place !== 'object' || place === null || !(key in place)) return false
      place = (place as Record<string, unknown>)[key]
    }
    return true
  }
  const optional = /(\[\]|resources|Resources|podDisruptionBudget)/
  const { known } = walk(schema)
  assert.deepEqual(
    known.filter((path) => path !== OF_HELM && !optional.test(path) && !has(path)),
    [],
  )
})

/** Paths of all values, except objects with keys. */
function leavesOf(value: unknown, path = ''): string[] {
  const isTree =
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
  if (!isTree) return [path]
  return Object.entries(value).flatMap(([key, child]) =>
    leavesOf(child, path === '' ? key : `${path}.${key}`),
  )
}
