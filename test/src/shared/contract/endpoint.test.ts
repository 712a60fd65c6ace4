// Consistency of the rows of both tables.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { APPLIANCE_ROUTES } from '../../../../appliance/appliance-routes.ts'
import { ROUTES } from '../../../../src/gateway/routes/routes.ts'
import { type Endpoint, parametersOf } from '../../../../src/shared/contract/endpoint.ts'

const rows: readonly Endpoint[] = [...APPLIANCE_ROUTES, ...ROUTES]
const named = ({ method, path }: Endpoint): string => `${method} ${path}`

function repeated(names: readonly string[]): readonly string[] {
  return names.filter((name, index) => names.indexOf(name) !== index)
}

test('every row has a different path in its table', () => {
  assert.deepEqual(repeated(APPLIANCE_ROUTES.map(named)), [])
  assert.deepEqual(repeated(ROUTES.map(named)), [])
})

test('every row says in sentences what it does and answers', () => {
  for (const row of rows) {
    for (const says of [row.says, ...row.answers.map((answer) => answer.says)])
      assert.match(says, /^["A-Z0-9].*\.$/s, named(row))
  }
})

test('no row has two parameters of one name', () => {
  for (const row of rows)
    assert.deepEqual(repeated(parametersOf(row).map(({ name }) => name)), [], named(row))
})

test('a row has the parameters of its place', () => {
  const namesAt = (table: readonly Endpoint[], path: string): readonly string[] =>
    parametersOf(table.find((row) => row.path === path) as Endpoint).map(({ name }) => name)
  const has = (names: readonly string[], ...wanted: string[]) => wanted.map((name) => names.includes(name))
  const some = ['Device', 'Resume', 'After', 'Follow', 'StreamName', 'Strict']
  const device = namesAt(APPLIANCE_ROUTES, '/api/v1/pcap/timerange')
  assert.deepEqual(has(device, ...some), [false, false, true, true, false, true])
  const below = namesAt(ROUTES, '/devices/:device/api/v1/pcap/timerange')
  assert.deepEqual(has(below, ...some), [false, true, false, true, false, true])
  const root = namesAt(ROUTES, '/pcap/single')
  assert.deepEqual(has(root, ...some), [true, true, false, false, true, true])
  assert.deepEqual(namesAt(ROUTES, '/livez'), [])
})

test('TSMode of an old time range is a unit', () => {
  const modeAt = (path: string) =>
    parametersOf(ROUTES.find((row) => row.path === path) as Endpoint).find(({ name }) => name === 'TSMode')
      ?.type.schema.enum
  assert.ok(modeAt('/pcap/timerange')?.includes('msec'))
  assert.ok(modeAt('/devices/:device/pcap/timerange')?.includes('msec'))
  assert.ok(modeAt('/pcap/single')?.includes('vendorB3550'))
})

test('what changes something is never asked for by HEAD, and needs the scope of a change', () => {
  const changing = rows.filter(({ changes }) => changes !== undefined)
  assert.ok(changing.length > 10)
  // A token, ticket or session has only the rights of its creator, so creating one changes nothing else.
  const ofOwn = ['Tokens', 'Page']
  const scopes = ['capture:control', 'capture:upload', 'capture:delete', 'export:create']
  // Who may download may also cancel downloads of their own; for those of others a handler requires more.
  const isCancel = ({ changes, scope }: (typeof rows)[number]) =>
    changes === 'queue' && scope === 'capture:download'
  for (const row of changing)
    assert.ok(ofOwn.includes(row.group) || scopes.includes(row.scope) || isCancel(row), named(row))
  // A form is another way to send the parameters of a GET.
  const others = rows.filter(
    (row) => row.method !== 'GET' && row.changes === undefined && row.takesForm !== true,
  )
  assert.deepEqual(others.map(named), [])
})
