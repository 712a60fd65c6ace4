/** Credentials that callers make of those that they have: tokens and tickets. */
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
  devices: z.array(text).describe('Selections as Device has them; a device must be in each'),
  filters: z.array(text).describe('BPF filters; a packet must pass each'),
  spanMaxS: integer.optional(),
  quotas: z.array(
    z.object({
      holder: text.describe('The user, or the id of the token, by which it is counted'),
      bytesPerDay: integer.optional(),
      streamsMax: integer.optional(),
    }),
  ),
})

export const TOKEN = named('Token', {
  kind: z.enum(['token', 'session']).describe('session: somebody has signed in at the page'),
  id: text,
  user: text,
  scopes: z.array(z.enum(SCOPES)),
  bounds: BOUNDS,
  note: text.nullable(),
  parentId: text.nullable().describe('The token by which it was made, and with which it is revoked'),
  createdAt: instant,
  expiresAt: instant,
  revokedAt: instant.nullable(),
})

export const NEW_TOKEN = TOKEN.extend({ token: text.describe('It is told here, and never again') }).meta({
  id: 'NewToken',
})
export const TOKENS = named('Tokens', { tokens: z.array(TOKEN) })
export const TICKET = named('Ticket', {
  url: text.describe('Path and query of the link, below the address of the gateway'),
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
    isChange: true,
    takesKnownOnly: true,
    group: 'Tokens',
    says: 'Makes a token of what the caller may do, or of less. What is asked beyond that is an error.',
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
      'The tokens of the user that have not expired, newest first: those of all users for whoever has the scope admin; ' +
      'whoever comes with a token sees it and those that were made by it.',
    parameters: [{}],
    answers: [json(TOKENS, 'The tokens, without what proves them.')],
    errors: ['scheduler-unavailable'],
  },
  revoke: {
    method: 'DELETE',
    path: '/v1/tokens/:id',
    scope: 'known',
    filtered: 'nothing',
    others: 'nothing',
    isChange: true,
    group: 'Tokens',
    says:
      'Revokes a token of those that the caller sees, with all that were made by it. What runs by them is cut, on all ' +
      'gateways within 5 s.',
    parameters: [{}],
    answers: [json(TOKEN, 'The token as it is from now on.')],
    errors: ['unknown-token', ...CHANGE_ERRORS],
  },
  ticket: {
    method: 'POST',
    path: '/v1/tickets',
    scope: 'capture:download',
    filtered: 'passing',
    others: 'nothing',
    isChange: true,
    takesKnownOnly: true,
    group: 'Tokens',
    says: 'Makes a link that lets one download in, once, with what the caller may have. HEAD does not use it up.',
    parameters: [TICKET_PARAMETERS],
    answers: [{ ...json(TICKET, 'The link.'), status: 201 }],
    errors: ['user-quota', ...CHANGE_ERRORS],
  },
} as const satisfies Record<string, Endpoint>
