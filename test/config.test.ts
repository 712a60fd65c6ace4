// The example configurations load, list every key, and state the actual defaults.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { z } from 'zod'
import { applianceConfigSchema } from '../appliance/appliance-config.ts'
import { gatewayConfigSchema } from '../src/gateway/gateway-config.ts'
import { parseConfig } from '../src/shared/base/config-file.ts'
import { REPOSITORY_ROOT } from './support/repository-files.ts'

/** `required` is the smallest configuration that loads; the rest of the loaded document is defaults. */
const PROGRAMS = [
  {
    example: 'config/gateway.example.yaml',
    schema: gatewayConfigSchema,
    required: {
      auth: { users: 'users.yaml' },
      devices: [{ name: 'a', url: 'http://192.0.2.1', user: 'u', password: { env: 'X' } }],
    },
  },
  {
    example: 'config/appliance.example.yaml',
    schema: applianceConfigSchema,
    required: { store: './store', auth: { users: './users.yaml' } },
  },
] as const

/** This default depends on the machine. */
const NO_FIXED_DEFAULT = new Set(['timeZone', 'audit.name'])

for (const { example, schema, required } of PROGRAMS) {
  const text = readFileSync(join(REPOSITORY_ROOT, example), 'utf8')

  test(`${example} loads`, () => {
    assert.ok(parseConfig(text, example, schema))
  })

  test(`${example} shows every key, at least as a comment`, () => {
    const keys = keysOf(schema)
    assert.ok(keys.length > 10)
    assert.deepEqual(
      keys.filter((key) => !new RegExp(`^[\\s#-]*${key}:`, 'm').test(text)),
      [],
    )
  })

  test(`${example} states the defaults`, () => {
    const shown = leaves(parse(text))
    const given = leaves(required)
    const defaults = leaves(schema.parse(required))
    const compared = [...defaults].filter(([path]) => !given.has(path) && !NO_FIXED_DEFAULT.has(path))
    assert.ok(compared.length > 5)
    for (const [path, value] of compared) assert.deepEqual([path, shown.get(path)], [path, value])
  })
}

/** The path of the list entry in which a key is misspelt. */
const FIRST = '0'

for (const { example, schema, required } of PROGRAMS) {
  const text = readFileSync(join(REPOSITORY_ROOT, example), 'utf8')
  const document = { ...parse(text), ...required }

  for (const path of new Map(objectPaths(schema).map((way) => [way.join('.'), way])).values()) {
    test(`${example}: a misspelt key in ${path.join('.') || 'the document'} is refused`, () => {
      const misspelt = structuredClone(document)
      let place: Record<string, unknown> = misspelt
      for (const [index, key] of path.entries()) {
        place[key] ??= path[index + 1] === FIRST ? [] : {}
        place = place[key] as Record<string, unknown>
      }
      place.mispelt = 1
      const { success, error } = schema.safeParse(misspelt)
      assert.equal(success, false)
      assert.match(JSON.stringify(error?.issues), /mispelt/)
    })
  }
}

/** Paths to all objects of the schema, including the schema itself. */
function objectPaths(schema: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (schema instanceof z.ZodObject) {
    const below = Object.entries(schema.shape).flatMap(([key, value]) => objectPaths(value, [...path, key]))
    return [path, ...below]
  }
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional)
    return objectPaths(schema.def.innerType, path)
  // The other keys of an entry depend on its type: exports.targets have their own tests.
  if (schema instanceof z.ZodDiscriminatedUnion) return []
  if (schema instanceof z.ZodArray) return objectPaths(schema.element, [...path, FIRST])
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => objectPaths(option, path))
  return []
}

/** Names of all settings, at any depth. */
function keysOf(schema: unknown): string[] {
  if (schema instanceof z.ZodObject) {
    return Object.entries(schema.shape).flatMap(([key, value]) => [key, ...keysOf(value)])
  }
  if (schema instanceof z.ZodArray) return keysOf(schema.element)
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional) {
    return keysOf(schema.def.innerType)
  }
  return []
}

/** The value at a path, such as "downloads.waitS" -> 25. Lists count as values. */
function leaves(value: unknown, path = ''): Map<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map([[path, value]])
  return new Map(
    Object.entries(value).flatMap(([key, child]) => [...leaves(child, path === '' ? key : `${path}.${key}`)]),
  )
}
