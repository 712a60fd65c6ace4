/**
 * Parses the text of a bearer token (a JWT in compact form, RFC 7519) strictly before it is verified: each token
 * has exactly one spelling, and no name occurs twice.
 */
import { z } from 'zod'
import { CapfleetError } from '../../shared/base/error.ts'

export interface CompactToken {
  readonly head: TokenHead
  /** Not verified yet. */
  readonly claims: Readonly<Record<string, unknown>>
}

/** What may be wrong with a token: reported to its sender in words, and counted. */
export type TokenFlaw =
  | 'malformed'
  | 'unknown-issuer'
  | 'unknown-key'
  | 'signature'
  | 'claims'
  | 'expired'
  | 'revoked'
  | 'no-rights'

/** Longer tokens are rejected unread. */
export const TOKEN_BYTES_MAX = 8_192

/**
 * These change what the signature means. Other header members can be ignored: a key, or the location of one (jwk,
 * jku, x5u, x5c), is never taken from the token that it would vouch for.
 */
const REFUSED_MEMBERS = ['crit', 'b64', 'zip', 'enc'] as const

const headSchema = z.object({
  alg: z.string().min(1).max(16),
  kid: z.string().min(1).max(256),
  typ: z.string().max(64).optional(),
  ...Object.fromEntries(REFUSED_MEMBERS.map((name) => [name, z.undefined().optional()])),
})
export type TokenHead = Pick<z.infer<typeof headSchema>, 'alg' | 'kid' | 'typ'>

const claimsSchema = z.record(z.string(), z.unknown())

/** Fails with unauthenticated. */
export function readCompactToken(token: string): CompactToken {
  if (token.length > TOKEN_BYTES_MAX)
    throw refusedToken('malformed', `has more than ${TOKEN_BYTES_MAX} bytes`)
  const parts = token.split('.', 4)
  const [head = '', claims = '', signature = ''] = parts
  if (parts.length !== 3) throw refusedToken('malformed', 'does not have three parts separated by dots')
  decode(signature)
  const { success, data, error } = headSchema.safeParse(readJson(head))
  if (!success)
    throw refusedToken('malformed', `has a header that is not accepted: ${z.prettifyError(error)}`)
  return { head: data as TokenHead, claims: readClaims(claims) }
}

/** "the token ..." */
export function refusedToken(flaw: TokenFlaw, problem: string): CapfleetError {
  return new CapfleetError('unauthenticated', `the token ${problem}; get another one`, { tokenFlaw: flaw })
}

function readClaims(part: string): Readonly<Record<string, unknown>> {
  const { success, data } = claimsSchema.safeParse(readJson(part))
  if (success) return data
  throw refusedToken('malformed', 'has claims that are not a JSON object')
}

function readJson(part: string): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(decode(part))
    const value: unknown = JSON.parse(text)
    if (keysIn(value) === keysWritten(text)) return value
  } catch {
    throw refusedToken('malformed', 'has a part that is not JSON in base64url')
  }
  throw refusedToken('malformed', 'has a duplicate key')
}

/** Decodes base64url without padding; accepts only the canonical spelling of the bytes. */
function decode(part: string): Buffer {
  const bytes = Buffer.from(part, 'base64url')
  if (part !== '' && bytes.toString('base64url') === part) return bytes
  throw refusedToken('malformed', 'has a part that is not base64url')
}

/** Counts the names in a parsed value; JSON.parse() keeps only the last of several values of a name. */
function keysIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members = Object.values(value)
  const own = Array.isArray(value) ? 0 : members.length
  return members.reduce<number>((sum, member) => sum + keysIn(member), own)
}

/** Counts the names in the text. REQUIRES: valid JSON, where each colon outside a string follows a name. */
function keysWritten(json: string): number {
  let names = 0
  let isInString = false
  for (let at = 0; at < json.length; at += 1) {
    const character = json[at]
    if (character === '"') isInString = !isInString
    else if (isInString && character === '\\') at += 1
    else if (!isInString && character === ':') names += 1
  }
  return names
}
