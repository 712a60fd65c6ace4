/** How a caller's query string is recorded in the audit: pair by pair, so that one pair cannot hide another. */
import { redactedText } from '../../shared/base/redact.ts'

/** Maximum number of pairs in a request, counted as parseQueryString does. */
const PAIRS_MAX = 64
const NAME_MAX = 64
const VALUE_MAX = 256
/** Names of parameters with secret values, in lower case. */
const SECRET_NAMES: ReadonlySet<string> = new Set(['ticket', 'token', 'access_token', 'password', 'secret'])

/** The raw query string (without "?") with secret values redacted and long names and values truncated. */
export function shownQuery(raw: string): string {
  const pairs = raw.split('&')
  const shown = pairs.slice(0, PAIRS_MAX).map(shownPair)
  if (pairs.length > PAIRS_MAX) shown.push(`... (${pairs.length} pairs)`)
  return shown.join('&')
}

function shownPair(pair: string): string {
  const equals = pair.indexOf('=')
  if (equals < 0) return redactedText(cut(pair, NAME_MAX))
  const name = pair.slice(0, equals)
  const isSecret = SECRET_NAMES.has(decoded(name.slice(0, NAME_MAX)).toLowerCase())
  const value = isSecret ? '[redacted]' : redactedText(cut(pair.slice(equals + 1), VALUE_MAX))
  return `${redactedText(cut(name, NAME_MAX))}=${value}`
}

function cut(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax)}... (${text.length} characters)`
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll('+', ' '))
  } catch {
    return name
  }
}
