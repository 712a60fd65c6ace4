/**
 * Unknown parameters of a path. Most of them are ignored and listed in Capfleet-Ignored, because scripts for other
 * products send more than we support. Those that are probably misspellings of a parameter of the path are rejected:
 * without it, the answer would contain more than the caller asked for.
 */
import type { ParameterizedContext } from 'koa'
import type { RequestState } from '../http/http-app.ts'
import { nearestNames } from '../query/nearest-names.ts'
import { badParameter } from '../query/query-parameters.ts'
import type { GivenParameters } from '../query/read-parameters.ts'
import { type Endpoint, parametersOf } from './endpoint.ts'
import { givenParameters } from './request-parameters.ts'

/**
 * Fails with bad-parameter for a misspelt name, and for any unknown one if the route only accepts known ones, or the
 * parameters came as a form: only scripts that are written for us send forms.
 */
export function refuseMisspelt(endpoint: Endpoint, ctx: ParameterizedContext<RequestState>): void {
  if (endpoint.parameters === undefined) return
  const names = parametersOf(endpoint).map(({ name }) => name)
  refuseMisspeltNames(names, givenParameters(ctx), {
    takesKnownOnly: endpoint.takesKnownOnly === true || ctx.state.hasForm === true,
  })
}

/** The same for a path with parameters of these names. */
export function refuseMisspeltNames(
  names: readonly string[],
  given: GivenParameters,
  { takesKnownOnly }: { readonly takesKnownOnly: boolean },
): void {
  const known = new Set(names)
  for (const name of given.keys()) if (!known.has(name)) refuseName(name, names, takesKnownOnly)
}

/** Characters that occur in expressions but not in names. */
const PIECE = /[\s<>=!|&()[\]{}*+^~"'\\]/
/** An address or a network of a list that was cut at "&". */
const ADDRESS = /^(\d{1,3}(\.\d{1,3}){3}|[\da-f]{0,4}:[\da-f:.]*)(\/\d{1,3})?$/i
/** Words that begin an expression: splitting "FilterBPF=tcp&&udp" at "&" yields a parameter "udp". */
const EXPRESSION_WORDS: ReadonlySet<string> = new Set([
  ...[
    'and',
    'or',
    'not',
    'host',
    'net',
    'port',
    'portrange',
    'src',
    'dst',
    'proto',
    'ether',
    'ip',
    'ip6',
    'arp',
    'rarp',
  ],
  ...['tcp', 'udp', 'sctp', 'icmp', 'icmp6', 'igmp', 'vlan', 'mpls', 'pppoes', 'geneve', 'less', 'greater'],
  ...['broadcast', 'multicast', 'gateway', 'inbound', 'outbound'],
])

function refuseName(name: string, known: readonly string[], takesKnownOnly: boolean): void {
  const same = known.find((other) => folded(other) === folded(name))
  if (same !== undefined) throw badParameter(name, `is not a parameter of this path; ${same} is`)
  if (PIECE.test(name) || EXPRESSION_WORDS.has(name.toLowerCase())) {
    throw badParameter(
      name,
      'is not a parameter, but looks like a piece of an expression that was cut at "&"; write && as %26%26 there, or "and"',
    )
  }
  if (ADDRESS.test(name))
    throw badParameter(name, 'is not a parameter, but an address; separate addresses by commas, not by "&"')
  if (/^filter/i.test(name))
    throw badParameter(name, `is not a parameter of this path; ${filtersOf(name, known)}`)
  if (!takesKnownOnly) return
  const near = nearestNames(name, known)
  const hint =
    near.length === 0
      ? 'if it belongs to the value of another one, write & as %26 there'
      : `did you mean ${near.join(', ')}?`
  throw badParameter(name, `is not a parameter of this path; ${hint}`)
}

/** Equal for names that differ only in case, or in singular and plural. */
function folded(name: string): string {
  const lower = name.toLowerCase()
  if (lower.endsWith('sses')) return lower.slice(0, -'es'.length)
  return lower.endsWith('s') && !lower.endsWith('ss') ? lower.slice(0, -1) : lower
}

function filtersOf(name: string, known: readonly string[]): string {
  const filters = known.filter((other) => other.startsWith('Filter'))
  if (filters.length === 0) return 'it has no filters'
  // "filter" is a part of all of them, of which the first is the usual one.
  const [near] = folded(name) === 'filter' ? filters : nearestNames(name, filters)
  return `${near === undefined ? '' : `did you mean ${near}? `}its filters are ${filters.join(', ')}`
}
