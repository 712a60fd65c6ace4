/** Describes a table of endpoints as an OpenAPI 3.1 document. */
import { productVersion } from '../base/product-version.ts'
import { type Endpoint, GROUPS } from './endpoint.ts'
import {
  errorComponents,
  type OperationParts,
  openApiPath,
  operation,
  type SecurityWay,
} from './openapi-operation.ts'
import { SharedParts } from './shared-parts.ts'
import { TOKEN_API } from './token-api.ts'

/** The description as text, because limits of parameters exceed the precision of a number. */
export function openApi(program: string, endpoints: readonly Endpoint[]): string {
  const ways = waysIn(endpoints)
  const parts: OperationParts = {
    ways: ways.map((way) => ({ [way]: [] })),
    schemas: new Map(),
    parameters: new SharedParts('parameters'),
    headers: new SharedParts('headers'),
    errors: new Map(),
  }
  const paths: Record<string, Record<string, object>> = {}
  for (const endpoint of endpoints) {
    const path = openApiPath(endpoint.path)
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint, parts) }
  }
  const groups = new Set(endpoints.map(({ group }) => group))
  const responses = errorComponents(parts)
  return JSON.stringify(
    {
      openapi: '3.1.0',
      info: {
        title: program,
        version: productVersion(),
        description: INTRODUCTION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/' }],
      tags: [...groups].map((name) => ({ name, description: GROUPS[name] })),
      security: parts.ways,
      paths,
      components: {
        securitySchemes: Object.fromEntries(ways.map((way) => [way, SECURITY_SCHEMES[way]])),
        parameters: parts.parameters.components,
        headers: parts.headers.components,
        responses,
        schemas: Object.fromEntries(parts.schemas),
      },
    },
    (_key, value: unknown) => (typeof value === 'bigint' ? rawJson(String(value)) : value),
  )
}

/** What applies to all paths. */
export const INTRODUCTION = [
  'Integers in the query string may have the suffix ULL, and + is a space. An empty parameter means its default, except for Device, capture names, times and the bounds of a token.',
  'A parameter that a path does not have is ignored and named in Capfleet-Ignored; with Strict=1 it is an error. A parameter that is given twice is an error.',
  'Integers in answers that a double would round are strings, or have an exact string "<name>Exact" next to them. Future versions may add members to answers.',
  'Errors are application/problem+json with a stable `code`. HEAD returns the head of GET, except on paths that change something.',
].join('\n\n')

const SECURITY_SCHEMES: Readonly<Record<SecurityWay, object>> = {
  basic: { type: 'http', scheme: 'basic', description: 'A user of the program.' },
  bearer: { type: 'http', scheme: 'bearer', description: 'A token of POST /v1/tokens.' },
}

/** A program that issues tokens accepts them. */
function waysIn(endpoints: readonly Endpoint[]): readonly SecurityWay[] {
  return endpoints.some(({ path }) => path === TOKEN_API.issue.path) ? ['basic', 'bearer'] : ['basic']
}

/** ECMAScript's JSON.rawJSON, which the type declarations lack so far. */
const rawJson = (text: string): object => (JSON as unknown as { rawJSON(text: string): object }).rawJSON(text)
