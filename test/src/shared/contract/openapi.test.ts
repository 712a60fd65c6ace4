import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { APPLIANCE_ROUTES } from '../../../../appliance/appliance-routes.ts'
import { routesWith } from '../../../../src/gateway/routes/routes.ts'
import type { Endpoint } from '../../../../src/shared/contract/endpoint.ts'
import { openApi } from '../../../../src/shared/contract/openapi.ts'
import { REPOSITORY_ROOT } from '../../../support/repository-files.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const TABLES: Readonly<Record<string, readonly Endpoint[]>> = {
  'capfleet gateway': routesWith(['/other/report']),
  'capfleet appliance': APPLIANCE_ROUTES,
}

interface Operation {
  readonly operationId: string
  readonly parameters: readonly (ShownParameter | Pointer)[]
  readonly responses: Readonly<Record<string, Pointer & { readonly content?: object }>>
}

interface Pointer {
  readonly $ref?: string
}

interface ShownParameter {
  readonly name: string
  readonly in: string
  readonly schema: object
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>
}

function parametersOf(document: Document, { parameters }: Operation): readonly ShownParameter[] {
  return parameters.map((parameter) => {
    if (!('$ref' in parameter)) return parameter as ShownParameter
    return document.components.parameters?.[parameter.$ref?.split('/').at(-1) ?? ''] as ShownParameter
  })
}

/** Names that become equal in a language with other naming rules. */
function clashesOf(names: readonly string[]): readonly (readonly string[])[] {
  const byName = Map.groupBy(names, (name) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, ''))
  return [...byName.values()].filter((same) => same.length > 1)
}

/** All objects inside a value, including the value itself. */
function objectsIn(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.values(value).flatMap(objectsIn)
  return Array.isArray(value) ? inner : [value as Readonly<Record<string, unknown>>, ...inner]
}

const LINT_RULES = `extends: [recommended-strict]
rules:
  # OpenAPI has no path that goes on: /devices/{device}/{path} stands for any rest.
  no-ambiguous-paths: off
  # /docs only leads to its folder; a test below has the others.
  operation-2xx-response: off
`

for (const [program, endpoints] of Object.entries(TABLES)) {
  const text = openApi(program, endpoints)
  const document = JSON.parse(text) as Document

  test(`the description of ${program} passes the strict rules of Redocly`, async () => {
    await using folder = await tempFolder()
    const path = join(folder.path, 'openapi.json')
    writeFileSync(path, text)
    const rules = join(folder.path, 'redocly.yaml')
    writeFileSync(rules, LINT_RULES)
    const home = join(folder.path, 'home')
    mkdirSync(home)
    const redocly = join(REPOSITORY_ROOT, 'node_modules/@redocly/cli/bin/cli.js')
    execFileSync(process.execPath, [redocly, 'lint', '--config', rules, '--format=stylish', path], {
      env: { HOME: home, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
      stdio: 'pipe',
    })
  })

  test(`every operation in the description of ${program} may succeed, or leads elsewhere`, () => {
    const failing = Object.entries(document.paths)
      .filter(
        ([, path]) =>
          !Object.values(path).every(({ responses }) => /\b2\d\d\b/.test(Object.keys(responses).join())),
      )
      .map(([path]) => path)
    assert.deepEqual(failing, '/docs' in document.paths ? ['/docs'] : [])
  })

  test(`the description of ${program} has every row of the table`, () => {
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
    assert.equal(operations.length, endpoints.length)
    assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, endpoints.length)
  })

  test(`everything that the description of ${program} points to is there`, () => {
    const pointers = [...text.matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)]
    assert.ok(pointers.length > 500)
    assert.deepEqual(
      pointers.filter(([, kind = '', name = '']) => document.components[kind]?.[name] === undefined),
      [],
    )
  })

  // Go, Java and Python derive identifiers from names.
  test(`no two names of ${program} differ in case, dashes and underscores alone`, () => {
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
    const { headers: _, securitySchemes: _ways, ...components } = document.components
    const places = [
      operations.map(({ operationId }) => operationId),
      Object.values(components).flatMap((parts) => Object.keys(parts)),
      ...operations.map((operation) =>
        parametersOf(document, operation)
          .filter((parameter) => parameter.in !== 'path')
          .map(({ name }) => name),
      ),
      ...objectsIn(document.components.schemas)
        .filter(({ type, properties }) => type === 'object' && properties !== undefined)
        .map(({ properties }) => Object.keys(properties as object)),
    ]
    assert.ok(places.length > 50)
    assert.deepEqual(places.flatMap(clashesOf), [])
  })

  test(`every error of ${program} is one of the answers that operations share, with the problem as its body`, () => {
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
    const errors = operations.flatMap(({ responses }) =>
      Object.entries(responses).filter(([status]) => Number(status) >= 400),
    )
    assert.ok(errors.length > 200)
    for (const [status, { $ref, content }] of errors) {
      assert.match($ref ?? '', /^#\/components\/responses\/\w+$/, status)
      assert.equal(content, undefined)
    }
    const shared = Object.values(document.components.responses ?? {}) as readonly { content: object }[]
    for (const { content } of shared) {
      const problem = { schema: { $ref: '#/components/schemas/Problem' } }
      assert.deepEqual(content, { 'application/problem+json': problem })
    }
  })

  test(`schemas of ${program} have what generated clients of several languages read`, () => {
    const schemas = objectsIn(document).filter(({ type }) => typeof type === 'string')
    // In Python, times accept no pattern, and a string with a pattern gets a type that hides the member Str.
    assert.deepEqual(
      objectsIn(document.components.schemas).filter((schema) => 'pattern' in schema),
      [],
    )
    // Without a format, integers in Java have 32 bits.
    const integers = schemas.filter(({ type }) => type === 'integer')
    assert.ok(integers.length > 20)
    assert.deepEqual(
      integers.filter(({ format }) => format !== 'int64'),
      [],
    )
    // Python compares values with their string forms.
    assert.deepEqual(
      schemas.filter((schema) => 'const' in schema && schema.type !== 'string'),
      [],
    )
    // Go and Python do not support JavaScript's syntax of named groups.
    assert.deepEqual(
      schemas.filter(({ pattern }) => String(pattern).includes('(?<')),
      [],
    )
  })
}

test('packets are bytes', () => {
  const { paths } = JSON.parse(openApi('x', APPLIANCE_ROUTES)) as Document
  const { content } = paths['/api/v1/pcap/timerange']?.get?.responses[200] ?? {}
  assert.deepEqual(content, {
    'application/vnd.tcpdump.pcap': { schema: { type: 'string', format: 'binary' } },
    'application/x-pcapng': { schema: { type: 'string', format: 'binary' } },
    'application/gzip': { schema: { type: 'string', format: 'binary' } },
    'application/zstd': { schema: { type: 'string', format: 'binary' } },
  })
})

test('an operation names its own codes of an error', () => {
  const { paths } = JSON.parse(openApi('x', APPLIANCE_ROUTES)) as Document
  assert.deepEqual(paths['/pcap/del']?.delete?.responses[409], {
    $ref: '#/components/responses/Conflict',
    description: '`capture-active`, `capture-in-use`',
  })
})

test('tokens are a way in where they are made', () => {
  for (const [program, ways] of [
    ['capfleet gateway', ['basic', 'bearer']],
    ['capfleet appliance', ['basic']],
  ] as const) {
    const { components } = JSON.parse(openApi(program, TABLES[program] ?? [])) as Document
    assert.deepEqual(Object.keys(components.securitySchemes ?? {}), ways)
  }
})

test('another spelling of a parameter, and a header beside the parameter of the same name, are not described', () => {
  const document = JSON.parse(openApi('x', TABLES['capfleet gateway'] ?? [])) as Document
  const namesOf = (path: string, method: string) => {
    const operation = document.paths[path]?.[method]
    assert.ok(operation)
    return parametersOf(document, operation).map(({ name }) => name)
  }
  const download = namesOf('/api/v1/pcap/timerange', 'get')
  assert.ok(download.includes('TSUnit') && !download.includes('TSUint'))
  const token = namesOf('/v1/tokens', 'post')
  assert.ok(token.includes('Devices') && !token.includes('Device'))
  const events = namesOf('/v1/events', 'get')
  assert.ok(events.includes('LastEventID') && !events.includes('Last-Event-ID'))
  assert.ok(namesOf('/v1/exports/{id}/events', 'get').includes('Last-Event-ID'))
})

test('limits beyond what a number holds are written to the last digit', () => {
  assert.match(openApi('x', APPLIANCE_ROUTES), /"maximum":9223372036854775807[,}]/)
})

test('a parameter comes with type, bounds, unit and default', () => {
  const document = JSON.parse(openApi('x', APPLIANCE_ROUTES)) as Document
  const single = document.paths['/api/v1/pcap/single']?.get
  assert.ok(single)
  const parameters = parametersOf(document, single)
  const slice = parameters.find(({ name }) => name === 'Slice')
  assert.deepEqual(slice, {
    name: 'Slice',
    in: 'query',
    description: 'Truncates each packet to this many bytes. Unit: bytes. Default: whole packets.',
    schema: { type: 'integer', minimum: 1, maximum: 12_288, format: 'int64' },
  })
  const words = parameters.find(({ name }) => name === 'TSResolution')?.schema
  assert.deepEqual(words, { type: 'string', enum: ['nsec', 'usec'], default: 'nsec' })
})
