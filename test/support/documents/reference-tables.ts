/** The tables of docs, as Markdown, generated from what the programs themselves use. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { APPLIANCE_ROUTES } from '../../../appliance/appliance-routes.ts'
import { AUDIT_EVENTS } from '../../../src/gateway/audit/audit-events.ts'
import { routesWith } from '../../../src/gateway/routes/routes.ts'
import { ERROR_KINDS } from '../../../src/shared/base/error.ts'
import { ROLES, SCOPES_OF_ROLE } from '../../../src/shared/base/scopes.ts'
import { type Endpoint, type HeaderRow, parametersOf } from '../../../src/shared/contract/endpoint.ts'
import { COMMON_ANSWER_HEADERS, COMMON_REQUEST_HEADERS } from '../../../src/shared/contract/headers.ts'
import { parameterText } from '../../../src/shared/contract/openapi-operation.ts'
import type { Parameter } from '../../../src/shared/query/query-parameters.ts'
import { COMMON_PARAMETERS } from '../../../src/shared/query/read-parameters.ts'
import { TIME_FORMS, type TimeForm } from '../../../src/shared/query/time/time-forms.ts'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import type { MetricTexts } from './metric-texts.ts'

const BELOW_DEVICE = '/devices/:device'
const GATEWAY_ROUTES = routesWith([])
/** Names of the parameters that downloads have. */
const OF_DOWNLOADS: ReadonlySet<string> = new Set(
  [...APPLIANCE_ROUTES, ...GATEWAY_ROUTES]
    .filter(isDownload)
    .flatMap((row) => parametersOf(row).map(({ name }) => name)),
)
const GATEWAY_OWN: readonly Endpoint[] = GATEWAY_ROUTES.filter(
  ({ path }) => !path.startsWith(BELOW_DEVICE) || path.includes('*'),
)

export function roleTable(): string {
  return table(
    ['Role', 'Scopes'],
    ROLES.map((role) => [code(role), [...SCOPES_OF_ROLE[role]].map(code).join(' ')]),
  )
}

/** The forms of a time, for API, command line and page. */
export function timeTable(): string {
  const forms: readonly TimeForm[] = Object.values(TIME_FORMS)
  return table(
    ['Time', 'Meaning', 'Printed by'],
    forms.map(({ examples, says, printedBy }) => [examples.map(code).join(' '), says, printedBy]),
  )
}

/** Paths of a device, then of the gateway: a row lists all methods for which a path does the same. */
export function pathTables(): string {
  return [
    'Of a device, and of the gateway below `/devices/{device}`:',
    pathTable(APPLIANCE_ROUTES),
    'Of the gateway:',
    pathTable(GATEWAY_OWN),
  ].join('\n\n')
}

function pathTable(endpoints: readonly Endpoint[]): string {
  const rows = [...Map.groupBy(endpoints, ({ path, says }) => `${path} ${says}`).values()]
  return table(
    ['Path', 'Methods', 'Scope', 'What', 'Parameters'],
    rows.map((same) => {
      const [first] = same as [Endpoint]
      const methods = same.map(({ method }) => method).join(', ')
      return [code(shownPath(first.path)), methods, accessOf(first), first.says, parameterNames(first)]
    }),
  )
}

function accessOf({ scope }: Endpoint): string {
  return ['anyone', 'known', 'system', 'metrics'].includes(scope) ? scope : code(scope)
}

/** Those of a download are in a separate table. */
function parameterNames(endpoint: Endpoint): string {
  const names = own(endpoint).map(({ name }) => name)
  const others = names.includes('FilterBPF') ? names.filter((name) => !OF_DOWNLOADS.has(name)) : names
  return [...(others.length < names.length ? ['of a download'] : []), ...others.map(code)].join(', ')
}

/** Parameters by name; a name with different meanings has a row for each. */
export function parameterTables(): string {
  const endpoints: readonly Endpoint[] = [...APPLIANCE_ROUTES, ...GATEWAY_ROUTES]
  const downloads = endpoints.filter(isDownload)
  const ofDownloads = new Set(distinctRows(downloads).map(({ name, says }) => name + says))
  return [
    'Parameters of downloads and estimates. The last two apply to every path:',
    parameterTable(distinctRows(downloads)),
    'Parameters of other paths. The table of paths says which path has which:',
    parameterTable(distinctRows(endpoints).filter(({ name, says }) => !ofDownloads.has(name + says))),
  ].join('\n\n')
}

/** Parameters of every path come last. */
function distinctRows(endpoints: readonly Endpoint[]): readonly Parameter[] {
  const rows = endpoints.flatMap(parametersOf)
  const ordered = [...rows.filter((row) => !isOfEveryPath(row)), ...rows.filter(isOfEveryPath)]
  return [...new Map(ordered.map((row) => [row.name + row.says, row] as const)).values()]
}

function isOfEveryPath({ name }: Parameter): boolean {
  return Object.values(COMMON_PARAMETERS).some((row) => row.name === name)
}

function parameterTable(rows: readonly Parameter[]): string {
  return table(
    ['Name', 'Values', 'Default', 'Meaning'],
    rows.map((row) => [code(row.name), valuesOf(row), defaultOf(row), parameterText(row)]),
  )
}

function defaultOf(row: Parameter): string {
  const text = row.default === undefined ? '' : row.type.write(row.default)
  return text === '' ? '' : code(text)
}

function valuesOf({ type: { schema }, example, required }: Parameter): string {
  const { minimum, maximum, enum: words, maxLength } = schema
  const parts = required === true ? ['required'] : []
  if (words !== undefined) parts.push(words.map(code).join(' '))
  else if (minimum !== undefined && maximum !== undefined) parts.push(`${minimum} to ${bound(maximum)}`)
  else if (maxLength !== undefined) parts.push(`at most ${maxLength} bytes`)
  if (example !== undefined) parts.push(`such as ${code(example)}`)
  return parts.join('; ')
}

function bound(value: bigint): string {
  return value === 2n ** 63n - 1n ? '2^63 - 1' : String(value)
}

export function headerTables(): string {
  const endpoints: readonly Endpoint[] = [...APPLIANCE_ROUTES, ...GATEWAY_ROUTES]
  const answers = endpoints.flatMap((endpoint) => endpoint.answers)
  const parts: readonly (readonly [string, readonly HeaderRow[]])[] = [
    [
      'request',
      [...COMMON_REQUEST_HEADERS, ...endpoints.flatMap(({ requestHeaders = [] }) => requestHeaders)],
    ],
    ['answer', [...COMMON_ANSWER_HEADERS, ...answers.flatMap(({ headers = [] }) => headers)]],
    ['trailer', answers.flatMap(({ trailers = [] }) => trailers)],
  ]
  const rows = parts.flatMap(([where, headers]) => {
    const distinct = new Map(headers.map((row) => [row.name, row] as const))
    return [...distinct.values()].map(({ name, says }) => [code(name), where, says])
  })
  return table(['Name', 'In', 'Meaning'], rows)
}

export function auditTable(): string {
  return table(
    ['Event', 'What'],
    Object.entries(AUDIT_EVENTS).map(([name, says]) => [code(name), says]),
  )
}

export function errorTable(): string {
  return table(
    ['Code', 'Status', 'Retry', 'Blame', 'Meaning'],
    Object.entries(ERROR_KINDS).map(([name, { status, retry, blame, title }]) => [
      code(name),
      String(status),
      retry ? 'yes' : 'no',
      blame,
      title,
    ]),
  )
}

/** Without Node's own. */
export function metricTables({ gateway, worker, appliance }: MetricTexts): string {
  return [
    'The gateway:',
    metricTable(gateway),
    'A worker:',
    metricTable(worker),
    'The appliance:',
    metricTable(appliance),
  ].join('\n\n')
}

function metricTable(text: string): string {
  const helps = [...text.matchAll(/^# HELP (capfleet_\w+) (.*)\n# TYPE \w+ (\w+)$/gm)]
  const sorted = helps.toSorted(([, a = ''], [, b = '']) => (a < b ? -1 : 1))
  return table(
    ['Metric', 'Type', 'Meaning'],
    sorted.map(([, name = '', help = '', type = '']) => [code(name), type, help]),
  )
}

/** The examples as they are. */
export function settingBlocks(): string {
  return ['config/gateway.example.yaml', 'config/appliance.example.yaml']
    .map(
      (path) =>
        `\`${path}\`:\n\n\`\`\`yaml\n${readFileSync(join(REPOSITORY_ROOT, path), 'utf8').trimEnd()}\n\`\`\``,
    )
    .join('\n\n')
}

function isDownload({ group, answers }: Endpoint): boolean {
  return group === 'Downloads' && answers.some(({ bodies }) => 'application/vnd.tcpdump.pcap' in bodies)
}

/** Without those of every path. */
function own(endpoint: Endpoint): readonly Parameter[] {
  return parametersOf(endpoint).filter((row) => !isOfEveryPath(row))
}

function shownPath(path: string): string {
  return path.replace('{*path}', '{path}').replaceAll(/:(\w+)/g, '{$1}')
}

/** Formatted as code. */
export function code(text: string): string {
  return `\`${text}\``
}

export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cellText).join(' | ')} |`
  return [line(heads), `|${'---|'.repeat(heads.length)}`, ...rows.map(line)].join('\n')
}

/** As text: a bar would end the cell, and "<" would begin an HTML element, except in code. */
function cellText(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replaceAll('<', '\\<')))
    .join('')
}
