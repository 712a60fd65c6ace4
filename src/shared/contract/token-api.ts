/** Credentials that callers derive from their own: tokens and tickets. */
import { z } from 'zod'
import type { ErrorCode } from '../base/error.ts'
import { SCOPES } from '../base/scopes.ts'
import { type Endpoint, json } from './endpoint.ts'
import { LOCATION } from './headers.ts'
import { integer, named } from './schema-parts.ts'
import { TICKET_PARAMETERS, TOKEN_PARAMETER_SPELLINGS, TOKEN_PARAMETERS } from './token-parameters.ts'

const text = z.string()
const instant = z.iso.datetime()

export const BOUNDS = named('Bounds', {
  devices: z.array(text).describe('Selections in the form of Device; a device must be in all of them'),
  filters: z.array(text).describe('BPF filters; a packet must pass all of them'),
  spanMaxS: integer.optional(),
  quotas: z.array(
    z.object({
      holder: text.describe('The user, or the id of the token, that the quota is counted for'),
      bytesPerDay: integer.optional(),
      streamsMax: integer.optional(),
    }),
  ),
})

export const TOKEN = named('Token', {
  kind: z.enum(['token', 'session']).describe('session: created by signing in on the page'),
  id: text,
  user: text,
  scopes: z.array(z.enum(SCOPES)),
  bounds: BOUNDS,
  note: text.nullable(),
  parentId: text.nullable().describe('The token that created this one; revoking it revokes this one, too'),
  createdAt: instant,
  expiresAt: instant,
  revokedAt: instant.nullable(),
})

export const NEW_TOKEN = TOKEN.extend({
  token: text.describe('The token itself; it is returned only here'),
}).meta({
  id: 'NewToken',
})
export const TOKENS = named('Tokens', { tokens: z.array(TOKEN) })
export const TICKET = named('Ticket', {
  url: text.describe('Path and query of the link, relative to the address of the gateway'),
  expiresAt: instant,
})

const CHANGE_ERRORS: readonly ErrorCode[] = ['cross-site', 'scheduler-unavailable']

export const TOKEN_API = {
  issue: {
    method: 'POST',
    path: '/v1/tokens',
    scope: 'known',
    filtered: 'nothing',
    others: 'nothing',
    changes: 'token',
    takesKnownOnly: true,
    group: 'Tokens',
    says: "Creates a token with the caller's rights or fewer. Requesting more is an error.",
    parameters: [TOKEN_PARAMETERS, TOKEN_PARAMETER_SPELLINGS],
    answers: [{ ...json(NEW_TOKEN, 'The token.'), status: 201, headers: [LOCATION] }],
    errors: [
      'bad-bpf',
      'out-of-bounds',
      'insufficient-scope',
      'unknown-device',
      'compiler-busy',
      'user-quota',
      ...CHANGE_ERRORS,
    ],
  },
  list: {
    method: 'GET',
    path: '/v1/tokens',
    scope: 'known',
    filtered: 'nothing',
    others: 'said',
    group: 'Tokens',
    says:
      "The user's tokens that have not expired, newest first. Callers with the scope admin get those of all users; " +
      'a caller that uses a token gets this token and those created with it.',
    parameters: [{}],
    answers: [json(TOKENS, 'The tokens, without their secret values.')],
    errors: ['scheduler-unavailable'],
  },
  revoke: {
    method: 'DELETE',
    path: '/v1/tokens/:id',
    scope: 'known',
    filtered: 'nothing',
    others: 'nothing',
    changes: 'token',
    group: 'Tokens',
    says:
      'Revokes a token that the caller can list, and all tokens created with it. Everything that runs with them is cut, on all ' +
      'gateways within 5 s.',
    parameters: [{}],
    answers: [json(TOKEN, 'The revoked token.')],
    errors: ['unknown-token', ...CHANGE_ERRORS],
  },
  ticket: {
    method: 'POST',
    path: '/v1/tickets',
    scope: 'capture:download',
    filtered: 'passing',
    others: 'nothing',
    changes: 'ticket',
    takesKnownOnly: true,
    group: 'Tokens',
    says: "Creates a link for a single download with the caller's rights. HEAD does not use it up.",
    parameters: [TICKET_PARAMETERS],
    answers: [{ ...json(TICKET, 'The link.'), status: 201 }],
    errors: ['user-quota', ...CHANGE_ERRORS],
  },
} as const satisfies Record<string, Endpoint>
