import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { APPLIANCE_ROUTES } from '../../../appliance/appliance-routes.ts'
import type { Endpoint } from '../../../src/contract/endpoint.ts'
import { openApi } from '../../../src/contract/openapi.ts'
import { routesWith } from '../../../src/routes/routes.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const TABLES: Readonly<Record<string, readonly Endpoint[]>> = {
  'capfleet gateway': routesWith(['/other/report']),
  'capfleet appliance': APPLIANCE_ROUTES,
}

interface Operation {
  readonly operationId: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: object }[]
  readonly responses: Readonly<Record<string, { readonly content?: object }>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

const LINT_RULES = `extends: [recommended-strict]
rules:
  # OpenAPI has no path that goes on: /devices/{device}/{path} stands for any rest.
  no-ambiguous-paths: off
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

  test(`the description of ${program} has every row of the table`, () => {
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path))
    assert.equal(operations.length, endpoints.length)
    assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, endpoints.length)
  })

  test(`every schema that the description of ${program} points to is there`, () => {
    const named = [...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map((match) => match[1] ?? '')
    assert.ok(named.length > 20)
    assert.deepEqual(
      named.filter((name) => !(name in document.components.schemas)),
      [],
    )
  })
}

test('limits beyond what a number holds are written to the last digit', () => {
  assert.match(openApi('x', APPLIANCE_ROUTES), /"maximum":9223372036854775807[,}]/)
})

test('a parameter comes with type, bounds, unit and default', () => {
  const { paths } = JSON.parse(openApi('x', APPLIANCE_ROUTES)) as Document
  const { parameters = [] } = paths['/api/v1/pcap/single']?.get ?? {}
  const slice = parameters.find(({ name }) => name === 'Slice')
  assert.deepEqual(slice, {
    name: 'Slice',
    in: 'query',
    description: 'Keeps so many bytes of each packet at most. Unit: bytes. Default: whole packets.',
    schema: { type: 'integer', minimum: 1, maximum: 12_288 },
  })
  const words = parameters.find(({ name }) => name === 'TSResolution')?.schema
  assert.deepEqual(words, { type: 'string', enum: ['nsec', 'usec'], default: 'nsec' })
})
