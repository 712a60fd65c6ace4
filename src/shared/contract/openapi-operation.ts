/**
 * Describes an endpoint as an OpenAPI operation. Generators turn names into identifiers of other languages, so names
 * that differ only in case or dashes must be described once.
 */
import { STATUS_CODES } from 'node:http'
import type { z } from 'zod'
import { ERROR_KINDS, type ErrorCode } from '../base/error.ts'
import { type Access, roleWith } from '../base/scopes.ts'
import { FORM_TYPE, TEXT_TYPE } from '../http/form-body.ts'
import type { Parameter } from '../query/query-parameters.ts'
import { type AnswerSchema, answerSchema } from './answer-schema.ts'
import {
  type Answer,
  type Endpoint,
  FILTERED_VIEWS,
  type HeaderRow,
  OTHERS_VIEWS,
  parametersOf,
} from './endpoint.ts'
import { CAPFLEET_IGNORED, COMMON_ANSWER_HEADERS } from './headers.ts'
import { errorsOf, PROBLEM } from './problem.ts'
import { folded, type SharedParts } from './shared-parts.ts'

export type SecurityWay = 'basic' | 'bearer'

/** What the operations of a document share, and what they have used of it. */
export interface OperationParts {
  readonly ways: readonly Partial<Record<SecurityWay, readonly string[]>>[]
  readonly schemas: Map<string, object>
  readonly parameters: SharedParts
  readonly headers: SharedParts
  /** By status. */
  readonly errors: Map<number, Set<ErrorCode>>
}

/** ":device" becomes "{device}"; "{*path}", the rest of the path, which OpenAPI cannot express, becomes "{path}". */
export function openApiPath(path: string): string {
  return path.replace('{*path}', '{path}').replaceAll(/:(\w+)/g, '{$1}')
}

export function operation(endpoint: Endpoint, parts: OperationParts): object {
  const { says } = endpoint
  const [summary = says] = /^.*?[.:](?= |$)/.exec(says) ?? []
  // In clients, a name must not be both in the address and in the body.
  const hasForm = endpoint.takesForm === true && endpoint.method === 'POST' && endpoint.changes === undefined
  const rows = describedParameters(endpoint)
  const parameters = [
    ...[...openApiPath(endpoint.path).matchAll(/\{(\w+)\}/g)].map(([, name = '']) => pathParameter(name)),
    ...(hasForm ? [] : rows.map((row) => queryParameter(row, endpoint))),
    ...describedHeaders(endpoint).map(headerParameter),
  ]
  return {
    operationId: operationId(endpoint),
    tags: [endpoint.group],
    summary: summary.replace(/[.:]$/, ''),
    description: `${says} ${accessWords(endpoint)}`,
    ...security(endpoint, parts),
    parameters: parameters.map((parameter) => parts.parameters.use(componentName(parameter), parameter)),
    ...(hasForm ? { requestBody: formBody(rows, endpoint) } : {}),
    ...(endpoint.takesFile === undefined ? {} : { requestBody: fileBody(endpoint.takesFile) }),
    responses: { ...answerResponses(endpoint, parts), ...errorResponses(endpoint, parts) },
  }
}

function fileBody(description: string): object {
  const schema = { type: 'string', format: 'binary' }
  return { description, required: true, content: { 'application/octet-stream': { schema } } }
}

/** The parameters as fields of a form, and the one that may be a text of its own. */
function formBody(rows: readonly Parameter[], endpoint: Endpoint): object {
  const fields = rows.map((row) => {
    const { name, schema, description } = queryParameter(row, endpoint)
    return [name, { ...schema, description }] as const
  })
  const required = rows.filter((row) => isRequired(row, endpoint)).map(({ name }) => name)
  const schema = {
    type: 'object',
    properties: Object.fromEntries(fields),
    ...(required.length === 0 ? {} : { required }),
  }
  const { takesText } = endpoint
  const text = takesText && {
    [TEXT_TYPE]: { schema: { ...takesText.type.schema, description: takesText.says } },
  }
  return { content: { [FORM_TYPE]: { schema }, ...text } }
}

/** Identifiers in clients are made from it, so it must not change. */
function operationId({ method, path }: Endpoint): string {
  const words = path.split(/\W+/).filter((word) => word !== '')
  return [method.toLowerCase(), ...(words.length === 0 ? ['page'] : words)].join('_')
}

/** Describes who may use an endpoint. */
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
  if (scope === 'anyone') return 'Needs no credentials.'
  if (scope === 'known') return 'Needs credentials, but no particular scope.'
  if (scope === 'metrics') return 'Needs the scope device:read, unless auth.anonymousMetrics is true.'
  if (scope === 'system') return 'Needs the scope device:read, unless auth.anonymousSystem is true.'
  return `Needs the scope ${scope}, which the role ${roleWith(scope)} has.`
}

/** Only if it differs from that of the whole document. */
function security({ scope }: Endpoint, { ways }: OperationParts): object {
  if (scope === 'anyone') return { security: [] }
  return scope === 'metrics' || scope === 'system' ? { security: [{}, ...ways] } : {}
}

interface DescribedParameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
}

/** "Device" in the query becomes DeviceQuery, because "Device" is the name of a schema. */
function componentName({ name, in: place }: DescribedParameter): string {
  return [name, place].map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

const PATH_PARAMETERS: Readonly<Record<string, string>> = {
  device: 'The name of a device.',
  id: 'The Capfleet-Request-Id of an answer, or the id of an export, a schedule or a token.',
  path: 'The rest of the path; it may hold slashes.',
  name: 'The name of a file.',
}

function pathParameter(name: string): DescribedParameter {
  const described = {
    name,
    in: 'path',
    required: true,
    description: PATH_PARAMETERS[name],
    schema: { type: 'string', minLength: 1 },
  } as const
  return described
}

/** Without alternative spellings. */
function describedParameters(endpoint: Endpoint): readonly Parameter[] {
  return parametersOf(endpoint).filter(({ isOtherSpelling }) => isOtherSpelling !== true)
}

interface DescribedRow extends DescribedParameter {
  readonly description: string
  readonly schema: object
}

function queryParameter(row: Parameter, endpoint: Endpoint): DescribedRow {
  const { name, type } = row
  const value = row.default === undefined ? '' : type.write(row.default)
  const isInteger = type.schema.type === 'integer'
  const shown = isInteger && value !== '' ? BigInt(value) : value
  const described = {
    name,
    in: 'query',
    description: parameterText(row),
    ...(isRequired(row, endpoint) ? { required: true } : {}),
    schema: {
      ...type.schema,
      ...(isInteger ? { format: 'int64' } : {}),
      ...(value === '' ? {} : { default: shown }),
    },
    ...(row.example === undefined ? {} : { example: row.example }),
  } as const
  return described
}

/** What a parameter does, with its unit and its default. */
export function parameterText({ says, type: { unit }, defaultSays }: Parameter): string {
  const parts = [says, unit === undefined ? '' : `Unit: ${unit}.`]
  if (defaultSays !== undefined) parts.push(`Default: ${defaultSays}.`)
  return parts.filter((part) => part !== '').join(' ')
}

/** Resume replaces all others, and an estimate requires what the kind of its download requires. */
export function isRequired({ required, kinds }: Parameter, endpoint: Endpoint): boolean {
  if (required !== true || (kinds !== undefined && endpoint.context?.kind === undefined)) return false
  return !parametersOf(endpoint).some(({ name }) => name === 'Resume')
}

/** Without those that have an equivalent query parameter: Last-Event-ID for LastEventID. */
function describedHeaders(endpoint: Endpoint): readonly HeaderRow[] {
  const parameters = new Set(describedParameters(endpoint).map(({ name }) => folded(name)))
  return (endpoint.requestHeaders ?? []).filter(({ name }) => !parameters.has(folded(name)))
}

function headerParameter({ name, says }: HeaderRow): DescribedParameter {
  const described = { name, in: 'header', description: says, schema: { type: 'string' } } as const
  return described
}

function answerResponses(endpoint: Endpoint, parts: OperationParts): Record<string, object> {
  const hasIgnored = endpoint.parameters !== undefined
  const responses = endpoint.answers.map((answer) => {
    const headers = [
      ...COMMON_ANSWER_HEADERS,
      ...(hasIgnored ? [CAPFLEET_IGNORED] : []),
      ...(answer.headers ?? []),
    ]
    return [String(answer.status ?? 200), response(answer, headers, parts)] as const
  })
  return Object.fromEntries(responses)
}

function response(answer: Answer, headers: readonly HeaderRow[], parts: OperationParts): object {
  const trailers = (answer.trailers ?? []).map(({ name, says }) => `- ${name}: ${says}`)
  const trailerText =
    trailers.length === 0
      ? ''
      : `\n\nTrailers of a body that was not cut, for clients that send "TE: trailers":\n${trailers.join('\n')}`
  const bodies = Object.entries(answer.bodies).map(
    ([type, body]) => [type, { schema: bodySchema(body, parts) }] as const,
  )
  return {
    description: answer.says + trailerText,
    headers: headerObjects(headers, parts),
    ...(bodies.length === 0 ? {} : { content: Object.fromEntries(bodies) }),
  }
}

function bodySchema(body: z.ZodType | 'text' | 'bytes', parts: OperationParts): object {
  if (body === 'text') return { type: 'string' }
  if (body === 'bytes') return { type: 'string', format: 'binary' }
  return sharedSchema(body, parts)
}

/** Adds the schema to the document's schemas, with everything it refers to. */
function sharedSchema(schema: z.ZodType, { schemas }: OperationParts): object {
  const text = JSON.stringify(answerSchema(schema)).replaceAll('"#/$defs/', '"#/components/schemas/')
  const { $defs = {}, ...pointer } = JSON.parse(text) as AnswerSchema
  for (const [name, part] of Object.entries($defs)) schemas.set(name, part)
  return pointer
}

function headerObjects(headers: readonly HeaderRow[], parts: OperationParts): object {
  return Object.fromEntries(
    headers.map(({ name, says }) => [
      name,
      parts.headers.use(name, { description: says, schema: { type: 'string' } }),
    ]),
  )
}

function errorResponses(endpoint: Endpoint, { errors }: OperationParts): Record<string, object> {
  const byStatus = Map.groupBy(errorsOf(endpoint), (code) => ERROR_KINDS[code].status)
  for (const [status, codes] of byStatus)
    errors.set(status, new Set([...(errors.get(status) ?? []), ...codes]))
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      {
        $ref: `#/components/responses/${errorName(status)}`,
        description: codes.map((code) => `\`${code}\``).join(', '),
      },
    ]),
  )
}

/** "Not Found" becomes NotFound. */
function errorName(status: number): string {
  return (STATUS_CODES[status] ?? String(status)).replaceAll(/\W/g, '')
}

/** Headers of errors by their status. */
const ERROR_HEADERS: Readonly<Record<number, HeaderRow>> = {
  401: { name: 'WWW-Authenticate', says: 'Basic' },
  405: { name: 'Allow', says: 'The methods of the path.' },
  429: { name: 'Retry-After', says: 'Seconds after which the request may be retried.' },
  503: { name: 'Retry-After', says: 'Seconds after which the request may be retried.' },
}

/** The answers for all errors of the operations: one per status. */
export function errorComponents(parts: OperationParts): Record<string, object> {
  return Object.fromEntries(
    [...parts.errors].map(([status, codes]) => [
      errorName(status),
      errorComponent(status, [...codes], parts),
    ]),
  )
}

function errorComponent(status: number, codes: readonly ErrorCode[], parts: OperationParts): object {
  const extra = ERROR_HEADERS[status]
  return {
    description: `${STATUS_CODES[status]}: ${codes.map((code) => `\`${code}\` (${ERROR_KINDS[code].title})`).join(', ')}.`,
    headers: headerObjects([...COMMON_ANSWER_HEADERS, ...(extra === undefined ? [] : [extra])], parts),
    content: { 'application/problem+json': { schema: sharedSchema(PROBLEM, parts) } },
  }
}
