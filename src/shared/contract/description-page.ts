/**
 * The page /openapi: a table of endpoints for people. It is generated from the same rows as /openapi.json and contains no
 * script: one request, for which no policy has to be relaxed, and nothing to load from elsewhere.
 */
import { createHash } from 'node:crypto'
import type { z } from 'zod'
import { ERROR_KINDS } from '../base/error.ts'
import { productVersion } from '../base/product-version.ts'
import type { Parameter } from '../query/query-parameters.ts'
import { answerSchema } from './answer-schema.ts'
import { type Answer, type Endpoint, GROUPS, type HeaderRow, parametersOf } from './endpoint.ts'
import { INTRODUCTION } from './openapi.ts'
import { accessWords, isRequired } from './openapi-operation.ts'
import { errorsOf } from './problem.ts'

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid; }
details { margin: .3rem 0; }
summary { cursor: pointer; padding: .2rem 0; }
details > div { margin: 0 0 1.5rem 1.2rem; }
code { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
summary code { font-weight: 600; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .2rem .7rem .2rem 0; border-top: 1px solid #8884; }
th { border: 0; font-weight: 600; }
h4 { margin: 1rem 0 0; }
`

/** The page may use its own style, and nothing else. */
export const DESCRIPTION_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export function descriptionPage(program: string, endpoints: readonly Endpoint[]): string {
  const groups = Map.groupBy(endpoints, ({ group }) => group)
  const sections = [...groups].map(
    ([group, rows]) => `<h2>${group}</h2>\n<p>${words(GROUPS[group])}</p>\n${rows.map(section).join('\n')}`,
  )
  const introduction = INTRODUCTION.split('\n\n').map((paragraph) => `<p>${words(paragraph)}</p>`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${text(program)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${text(program)} ${text(productVersion())}</h1>
${introduction.join('\n')}
<p>The same for programs: <a href="/openapi.json">/openapi.json</a></p>
${sections.join('\n')}
</body>
</html>
`
}

function section(endpoint: Endpoint): string {
  const { method, path, says } = endpoint
  return `<details>
<summary><code>${method} ${text(path)}</code> ${words(says)}</summary>
<div>
<p>${words(accessWords(endpoint))}</p>
${parameterTable(endpoint)}
${headerTable('Headers of the request', endpoint.requestHeaders)}
${endpoint.answers.map(answerPart).join('\n')}
${errorTable(endpoint)}
</div>
</details>`
}

function parameterTable(endpoint: Endpoint): string {
  return table(
    'Parameters',
    ['Name', 'Values', 'Default', 'What it does'],
    parametersOf(endpoint).map((row) => [
      `<code>${text(row.name)}</code>${isRequired(row, endpoint) ? ' (required)' : ''}`,
      valuesText(row),
      defaultText(row),
      words(row.says),
    ]),
  )
}

function defaultText({ defaultSays, default: value, type }: Parameter): string {
  if (defaultSays !== undefined) return words(defaultSays)
  return value === undefined ? '' : `<code>${text(type.write(value))}</code>`
}

function valuesText({ type: { schema, unit }, example }: Parameter): string {
  const { minimum, maximum } = schema
  if (schema.enum !== undefined) return schema.enum.map((word) => `<code>${text(word)}</code>`).join(', ')
  if (minimum !== undefined && maximum !== undefined)
    return `an integer from ${minimum} to ${maximum}${unit === undefined ? '' : ` (${text(unit)})`}`
  const shown = example === undefined ? '' : `, such as <code>${text(example)}</code>`
  const limit = schema.maxLength === undefined ? '' : ` of at most ${schema.maxLength} bytes`
  return `a text${limit}${shown}`
}

function answerPart(answer: Answer): string {
  const bodies = Object.entries(answer.bodies).map(
    ([type, body]) => `<p><code>${text(type)}</code></p>${typeof body === 'string' ? '' : memberList(body)}`,
  )
  return `<h4>${answer.status ?? 200}</h4>
<p>${words(answer.says)}</p>
${bodies.join('\n')}
${headerTable('Headers', answer.headers)}
${headerTable('Trailers, for clients that send "TE: trailers"', answer.trailers)}`
}

interface SchemaShown {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly description?: string
  readonly properties?: Readonly<Record<string, SchemaShown>>
  readonly items?: SchemaShown
  readonly anyOf?: readonly SchemaShown[]
}

function memberList(body: z.ZodType): string {
  const { $defs = {}, ...schema } = answerSchema(body)
  return table('', ['Member', 'Type', 'Meaning'], membersOf(filledIn(schema, $defs) as SchemaShown, ''))
}

/** Replaces references by the parts they refer to. */
function filledIn(node: unknown, parts: Readonly<Record<string, object>>): unknown {
  if (Array.isArray(node)) return node.map((item) => filledIn(item, parts))
  if (typeof node !== 'object' || node === null) return node
  const { $ref, ...own } = node as { readonly $ref?: string }
  const part = $ref === undefined ? {} : parts[$ref.replace('#/$defs/', '')]
  const members = Object.entries({ ...part, ...own })
  return Object.fromEntries(members.map(([name, member]) => [name, filledIn(member, parts)]))
}

/** Nested members are listed as "outer.inner", those of lists as "outer[].inner". */
function membersOf({ properties = {}, items, anyOf = [] }: SchemaShown, prefix: string): readonly string[][] {
  const own = Object.entries(properties).flatMap(([name, member]) => [
    [`<code>${text(prefix + name)}</code>`, text(typeText(member)), words(member.description ?? '')],
    ...membersOf(member, `${prefix}${name}.`),
  ])
  const ofList = items === undefined ? [] : membersOf(items, `${prefix.slice(0, -1)}[].`)
  return [...own, ...ofList, ...anyOf.flatMap((way) => membersOf(way, prefix))]
}

function typeText({ type, const: only, enum: choices, items, anyOf }: SchemaShown): string {
  if (only !== undefined) return JSON.stringify(only)
  if (choices !== undefined) return choices.map((choice) => JSON.stringify(choice)).join(', ')
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeText))].join(' or ')
  if (items !== undefined) return `list of ${typeText(items)}`
  return typeof type === 'string' ? type : (type ?? ['anything']).join(' or ')
}

function errorTable(endpoint: Endpoint): string {
  const codes = errorsOf(endpoint).toSorted((a, b) => ERROR_KINDS[a].status - ERROR_KINDS[b].status)
  return table(
    'Errors',
    ['Status', 'Code', 'Meaning'],
    codes.map((code) => [
      String(ERROR_KINDS[code].status),
      `<code>${code}</code>`,
      text(ERROR_KINDS[code].title),
    ]),
  )
}

function headerTable(title: string, rows: readonly HeaderRow[] = []): string {
  return table(
    title,
    ['Name', 'Meaning'],
    rows.map(({ name, says }) => [`<code>${text(name)}</code>`, words(says)]),
  )
}

/** Cells are HTML. */
function table(title: string, heads: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const row = (cells: readonly string[], tag: string) =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`
  return `${title === '' ? '' : `<h4>${text(title)}</h4>`}
<table>${row(heads, 'th')}
${rows.map((cells) => row(cells, 'td')).join('\n')}
</table>`
}

/** Formats sentences in which names are in backticks. */
function words(sentences: string): string {
  return text(sentences).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}

function text(plain: string): string {
  return plain
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
