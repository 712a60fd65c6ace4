/** Parses the parameters of a request according to their rows, and handles those without a row. */
import { nearestNames } from './nearest-names.ts'
import { SWITCH, TEXT } from './parameter-types.ts'
import {
  badParameter,
  type Parameter,
  type ParameterRows,
  type ParameterValues,
  type ReadContext,
} from './query-parameters.ts'

/** The decoded parameters of a request, as parseQueryString gives them. */
export type GivenParameters = ReadonlyMap<string, string>

/** Parameters that every path accepts. */
export const COMMON_PARAMETERS = {
  strict: {
    name: 'Strict',
    says: 'Rejects parameters that the path does not have; otherwise they are ignored and named in Capfleet-Ignored.',
    type: SWITCH,
    default: false,
    leavesBody: true,
  },
  rand: {
    name: 'rand',
    says: 'Ignored; links carry it to defeat caches.',
    type: TEXT,
    leavesBody: true,
  },
} as const satisfies ParameterRows

/** The values of the rows. Fails with bad-parameter if one is malformed or missing. */
export function readParameters<const Rows extends ParameterRows>(
  rows: Rows,
  given: GivenParameters,
  context: ReadContext = {},
): ParameterValues<Rows> {
  const values: Record<string, unknown> = {}
  for (const [name, row] of Object.entries(rows)) {
    values[name] = isHere(row, context) ? readOne(row, given, context) : row.default
  }
  return values as ParameterValues<Rows>
}

/** Whether the row applies there. */
export function isHere({ kinds, deviceOnly }: Parameter, { kind, at = 'device' }: ReadContext): boolean {
  if (deviceOnly === true && at !== 'device') return false
  return kinds === undefined || kind === undefined || kinds.includes(kind)
}

/** The text of a required parameter; the message shows the example. Fails with bad-parameter. */
export function requireParameter(given: GivenParameters, name: string, example?: string): string {
  const text = given.get(name)
  if (text !== undefined && text !== '') return text
  const shown = example === undefined ? `${name}=...` : `${name}, such as ${name}=${example}`
  throw badParameter(name, `is missing; add ${shown}`)
}

/**
 * The names without a row, for Capfleet-Ignored; with Strict=1 they fail with bad-parameter. `tables` are the rows of
 * the path other than those of every path.
 */
export function ignoredParameters(
  tables: readonly ParameterRows[],
  given: GivenParameters,
  context: ReadContext = {},
): readonly string[] {
  const all = [...tables, COMMON_PARAMETERS]
  const { strict } = readParameters(COMMON_PARAMETERS, given)
  const unknown = [...given.keys()].filter((name) => !all.some((rows) => hasRow(rows, name, context)))
  const [first] = unknown
  if (!strict || first === undefined) return unknown
  const near = nearestNames(first, namesOf(all, context))
  const hint = near.length === 0 ? '' : `; did you mean ${near.join(', ')}?`
  throw badParameter(first, `is not a parameter of this path${hint}`)
}

function hasRow(rows: ParameterRows, name: string, context: ReadContext): boolean {
  for (const key in rows) {
    const row = rows[key]
    if (row?.name === name && isHere(row, context)) return true
  }
  return false
}

function namesOf(tables: readonly ParameterRows[], context: ReadContext): ReadonlySet<string> {
  const rows = tables.flatMap((table) => Object.values(table))
  return new Set(rows.filter((row) => isHere(row, context)).map(({ name }) => name))
}

/** Maximum length of a parameter whose type states no other limit, in characters. */
const TEXT_LENGTH_MAX = 4_096

function readOne(row: Parameter, given: GivenParameters, context: ReadContext): unknown {
  const { name, type } = row
  const { maxLength = TEXT_LENGTH_MAX } = type.schema
  if ((given.get(name)?.length ?? 0) > maxLength)
    throw badParameter(name, `is longer than ${maxLength} characters; ${type.whenTooLong ?? 'shorten it'}`)
  if (row.required === true) return type.read(requireParameter(given, name, row.example), name, context)
  const text = given.get(name)
  if (text === undefined || (text === '' && type.readsEmpty !== true)) return row.default
  return type.read(text, name, context) ?? row.default
}
