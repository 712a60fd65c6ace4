/**
 * Reads a YAML configuration: one document, validated as a whole, frozen. Every error message names the path of the
 * setting and its place ("devices[2].streems: unknown key (line 9, column 5)").
 */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type Document, isNode, LineCounter, parseDocument } from 'yaml'
import { z } from 'zod'
import { CapfleetError } from './error.ts'
import { Secret } from './secret.ts'

/** How many settings of a group a message names. */
const NAMED_MAX = 5

/** A secret is never part of the configuration itself: it comes from a file or the environment. */
export const secretSchema = z.union([
  z.strictObject({ file: z.string() }),
  z.strictObject({ env: z.string() }),
])
export type SecretSource = z.infer<typeof secretSchema>

/** Reads and validates `path`. Fails with bad-config, listing every problem. */
export async function loadConfig<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
): Promise<z.infer<Schema>> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    throw new CapfleetError(
      'bad-config',
      `cannot read the configuration ${path}: ${(cause as Error).message}`,
      { cause },
    )
  }
  return parseConfig(text, path, schema)
}

/** Like loadConfig, for a text that was already read; `path` is used in messages. */
export function parseConfig<Schema extends z.ZodType>(
  text: string,
  path: string,
  schema: Schema,
): z.infer<Schema> {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: true })
  const [syntaxError] = document.errors
  if (syntaxError) throw new CapfleetError('bad-config', `${path}: ${syntaxError.message}`)
  const parsed = schema.safeParse(document.toJS({ maxAliasCount: 100 }) ?? {})
  if (!parsed.success) {
    const problems = parsed.error.issues.flatMap((issue) =>
      describeIssue(issue, schema, placeIn(document, lines)),
    )
    throw new CapfleetError('bad-config', `${path}: ${problems.join('; ')}`, { members: { problems } })
  }
  return deepFreeze(parsed.data)
}

/** Without a trailing newline. File names are relative to the configuration's folder. */
export async function readSecret(source: SecretSource, configPath: string, setting: string): Promise<Secret> {
  if ('env' in source) {
    const value = process.env[source.env]
    if (value === undefined) {
      throw new CapfleetError('bad-config', `${setting}: the environment variable ${source.env} is not set`)
    }
    return new Secret(value)
  }
  const file = resolve(dirname(configPath), source.file)
  try {
    return new Secret((await readFile(file, 'utf8')).replace(/\r?\n$/, ''))
  } catch (cause) {
    throw new CapfleetError('bad-config', `${setting}: cannot read ${file}: ${(cause as Error).message}`, {
      cause,
    })
  }
}

type PlaceOf = (path: readonly PropertyKey[]) => string

function describeIssue(issue: z.core.$ZodIssue, schema: z.ZodType, placeOf: PlaceOf): string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => {
      const path = [...issue.path, key]
      return `${pathText(path)}: unknown key${caseHint(schema, issue.path, key)}${placeOf(path)}`
    })
  }
  const says = typeProblem(issue, schema) ?? issue.message
  return [`${pathText(issue.path) || 'document'}: ${says}${placeOf(issue.path)}`]
}

/** What is wrong with a value of another type; the settings of a group are named. undefined: anything else is wrong. */
function typeProblem(issue: z.core.$ZodIssue, schema: z.ZodType): string | undefined {
  const [, received] = /received (\w+)$/.exec(issue.message) ?? []
  if (received === 'undefined') return 'is missing'
  if (issue.code !== 'invalid_type' || issue.expected !== 'object') return undefined
  const names = keysAt(schema, issue.path)
  const shown = [...names.slice(0, NAMED_MAX), ...(names.length > NAMED_MAX ? ['...'] : [])]
  return `must be a group of settings${shown.length > 0 ? ` (${shown.join(', ')})` : ''}, not a ${received}`
}

/** " (line 9, column 5)" of a setting's value, or of the mapping that lacks it. */
function placeIn(document: Document, lines: LineCounter): PlaceOf {
  return (path) => {
    for (let depth = path.length; depth >= 0; depth -= 1) {
      const node = document.getIn(path.slice(0, depth), true)
      if (!isNode(node) || !node.range) continue
      const { line, col } = lines.linePos(node.range[0])
      return ` (line ${line}, column ${col})`
    }
    return ''
  }
}

function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    return text === '' ? String(part) : `${text}.${String(part)}`
  }, '')
}

/** "readonly" for "readOnly" is the most likely mistake; suggest the right spelling. */
function caseHint(schema: z.ZodType, path: readonly PropertyKey[], key: string): string {
  const known = keysAt(schema, path).find((name) => name.toLowerCase() === key.toLowerCase())
  return known === undefined ? '' : ` (did you mean ${known}?)`
}

function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let node: unknown = unwrap(schema)
  for (const part of path) {
    if (node instanceof z.ZodArray) node = unwrap(node.element)
    else if (node instanceof z.ZodObject) node = unwrap(node.shape[String(part)])
    else return []
  }
  return node instanceof z.ZodObject ? Object.keys(node.shape) : []
}

function unwrap(schema: unknown): unknown {
  let node = schema
  while (node instanceof z.ZodDefault || node instanceof z.ZodPrefault || node instanceof z.ZodOptional) {
    node = node.def.innerType
  }
  return node
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const child of Object.values(value)) deepFreeze(child)
  }
  return value
}
