/** A table of endpoints as an OpenAPI 3.1 document. */
import { STATUS_CODES } from 'node:http'
import { z } from 'zod'
import { ERROR_KINDS, type ErrorCode } from '../base/error.ts'
import { productVersion } from '../base/product-version.ts'
import { roleWith } from '../base/scopes.ts'
import type { Parameter } from '../query/query-parameters.ts'
import {
  type Access,
  type Answer,
  type Endpoint,
  FILTERED_VIEWS,
  GROUPS,
  type HeaderRow,
  type JsonBody,
  OTHERS_VIEWS,
  parametersOf,
} from './endpoint.ts'
import { CAPFLEET_IGNORED, COMMON_ANSWER_HEADERS } from './headers.ts'
import { errorsOf, PROBLEM } from './problem.ts'

/** As text: limits of parameters are integers beyond what a number holds. */
export function openApi(program: string, endpoints: readonly Endpoint[]): string {
  const schemas = new Map<string, object>([['Problem', jsonSchema(PROBLEM)]])
  const paths: Record<string, Record<string, object>> = {}
  for (const endpoint of endpoints) {
    const path = openApiPath(endpoint.path)
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint, schemas) }
  }
  const groups = new Set(endpoints.map(({ group }) => group))
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
      paths,
      components: {
        securitySchemes: { basic: { type: 'http', scheme: 'basic', description: 'A user of the program.' } },
        schemas: Object.fromEntries(schemas),
      },
    },
    (_key, value: unknown) => (typeof value === 'bigint' ? rawJson(String(value)) : value),
  )
}

/** What holds for all paths. */
export const INTRODUCTION = [
  'Integers of the query string may have the suffix ULL, and + is a space. An empty parameter means its default, save for Device, names of captures, times and the bounds of a token.',
  'A parameter that a path does not have is ignored and named in Capfleet-Ignored, and is an error with Strict=1; one that is given twice is an error.',
  'Integers of answers that a double would round are texts, or have an exact text "<name>Exact" beside them. Answers may get further members.',
  'Errors are application/problem+json with a stable `code`. HEAD gives the head of GET, save for what changes something.',
].join('\n\n')

/** ":device" is "{device}"; "{*path}" is the rest of the path, which OpenAPI cannot say: "{path}". */
function openApiPath(path: string): string {
  return path.replace('{*path}', '{path}').replaceAll(/:(\w+)/g, '{$1}')
}

const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  device: 'The name of a device.',
  id: 'The Capfleet-Request-Id of an answer, or the id of an export, a schedule or a token.',
  path: 'The rest of the path; it may hold slashes.',
  name: 'The name of a file.',
}

/** Who may use an endpoint, in words. */
export function accessWords({
  scope,
  filtered,
  others,
}: Pick<Endpoint, 'scope' | 'filtered' | 'others'>): string {
  return [scopeWords(scope), FILTERED_VIEWS[filtered], OTHERS_VIEWS[others]]
    .filter((words) => words !== '')
    .join(' ')
}

function scopeWords(scope: Access): string {
  if (scope === 'anyone') return 'Needs no user.'
  if (scope === 'known') return 'Needs credentials, whatever they are good for.'
  if (scope === 'metrics') return 'Needs the scope device:read, unless auth.anonymousMetrics is true.'
  if (scope === 'system') return 'Needs the scope device:read, unless auth.anonymousSystem is true.'
  return `Needs the scope ${scope}, which the role ${roleWith(scope)} has.`
}

function operation(endpoint: Endpoint, schemas: Map<string, object>): object {
  const { method, path, scope, group, says, requestHeaders = [] } = endpoint
  const [summary = says] = /^.*?[.:](?= |$)/.exec(says) ?? []
  return {
    operationId: [method.toLowerCase(), ...path.split(/\W+/)].filter((word) => word !== '').join('_'),
    tags: [group],
    summary: summary.replace(/[.:]$/, ''),
    description: `${says} ${accessWords(endpoint)}`,
    security: scope === 'anyone' ? [] : [...(OPEN_AS_A_RULE.has(scope) ? [{}] : []), { basic: [] }],
    parameters: [
      ...[...openApiPath(path).matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
        name,
        in: 'path',
        required: true,
        description: PATH_PARAMETERS[name],
        schema: { type: 'string', minLength: 1 },
      })),
      ...parametersOf(endpoint).map((row) => queryParameter(row, endpoint)),
      ...requestHeaders.map(({ name, says: description }) => ({
        name,
        in: 'header',
        description,
        schema: { type: 'string' },
      })),
    ],
    responses: { ...answerResponses(endpoint, schemas), ...errorResponses(endpoint) },
  }
}

const OPEN_AS_A_RULE: ReadonlySet<Access> = new Set<Access>(['metrics', 'system'])

function queryParameter(row: Parameter, endpoint: Endpoint): object {
  const { name, type } = row
  const value = row.default === undefined ? '' : type.write(row.default)
  const shown = type.schema.type === 'integer' && value !== '' ? BigInt(value) : value
  return {
    name,
    in: 'query',
    description: parameterText(row),
    ...(isRequired(row, endpoint) ? { required: true } : {}),
    schema: { ...type.schema, ...(value === '' ? {} : { default: shown }) },
    ...(row.example === undefined ? {} : { example: row.example }),
  }
}

/** What a parameter does, with its unit, and what holds without it. */
export function parameterText({ says, type: { unit }, defaultSays }: Parameter): string {
  const parts = [says, unit === undefined ? '' : `Unit: ${unit}.`]
  if (defaultSays !== undefined) parts.push(`Default: ${defaultSays}.`)
  return parts.filter((part) => part !== '').join(' ')
}

/** Resume stands for all others, and an estimate takes what the kind of its download needs. */
export function isRequired({ required, kinds }: Parameter, endpoint: Endpoint): boolean {
  if (required !== true || (kinds !== undefined && endpoint.context?.kind === undefined)) return false
  return !parametersOf(endpoint).some(({ name }) => name === 'Resume')
}

function answerResponses(endpoint: Endpoint, schemas: Map<string, object>): Record<string, object> {
  const hasIgnored = endpoint.parameters !== undefined
  const responses = endpoint.answers.map((answer) => {
    const headers = [
      ...COMMON_ANSWER_HEADERS,
      ...(hasIgnored ? [CAPFLEET_IGNORED] : []),
      ...(answer.headers ?? []),
    ]
    return [String(answer.status ?? 200), response(answer, headers, schemas)] as const
  })
  return Object.fromEntries(responses)
}

function response(answer: Answer, headers: readonly HeaderRow[], schemas: Map<string, object>): object {
  const trailers = (answer.trailers ?? []).map(({ name, says }) => `- ${name}: ${says}`)
  const trailerText =
    trailers.length === 0
      ? ''
      : `\n\nTrailers of a body that was not cut, for clients that say "TE: trailers":\n${trailers.join('\n')}`
  const bodies = Object.entries(answer.bodies)
  return {
    description: answer.says + trailerText,
    headers: headerObjects(headers),
    ...(bodies.length === 0
      ? {}
      : {
          content: Object.fromEntries(
            bodies.map(([type, body]) => [type, { schema: bodySchema(body, schemas) }]),
          ),
        }),
  }
}

function bodySchema(body: JsonBody | 'text' | 'bytes', schemas: Map<string, object>): object {
  if (body === 'text') return { type: 'string' }
  if (body === 'bytes') return {}
  if (!schemas.has(body.name)) schemas.set(body.name, jsonSchema(body.schema))
  return { $ref: `#/components/schemas/${body.name}` }
}

/** Without "additionalProperties: false": an answer may get further members. */
export function jsonSchema(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' })
  return rest
}

function headerObjects(headers: readonly HeaderRow[]): object {
  return Object.fromEntries(
    headers.map(({ name, says }) => [name, { description: says, schema: { type: 'string' } }]),
  )
}

/** Headers of errors by their status. */
const ERROR_HEADERS: Readonly<Record<number, HeaderRow>> = {
  401: { name: 'WWW-Authenticate', says: 'Basic' },
  405: { name: 'Allow', says: 'The methods of the path.' },
  429: { name: 'Retry-After', says: 'Seconds after which it may be tried again.' },
  503: { name: 'Retry-After', says: 'Seconds after which it may be tried again.' },
}

function errorResponses(endpoint: Endpoint): Record<string, object> {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of errorsOf(endpoint)) {
    const { status } = ERROR_KINDS[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return Object.fromEntries([...byStatus].map(([status, codes]) => [status, errorResponse(status, codes)]))
}

function errorResponse(status: number, codes: readonly ErrorCode[]): object {
  const extra = ERROR_HEADERS[status]
  return {
    description: `${STATUS_CODES[status]}: ${codes.map((code) => `\`${code}\` (${ERROR_KINDS[code].title})`).join(', ')}.`,
    headers: headerObjects([...COMMON_ANSWER_HEADERS, ...(extra === undefined ? [] : [extra])]),
    content: {
      'application/problem+json': {
        schema: {
          allOf: [{ $ref: '#/components/schemas/Problem' }, { properties: { code: { enum: codes } } }],
        },
      },
    },
  }
}

/** ECMAScript's JSON.rawJSON; the type declarations do not have it yet. */
const rawJson = (text: string): object => (JSON as unknown as { rawJSON(text: string): object }).rawJSON(text)
