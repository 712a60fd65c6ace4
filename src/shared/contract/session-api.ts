/** The page: its files, and the sessions of those who have signed in there. */
import { z } from 'zod'
import { SCOPES } from '../base/scopes.ts'
import { COOKIE_PATH } from '../http/session-cookie.ts'
import { patternType } from '../query/parameter-types.ts'
import type { ParameterRows } from '../query/query-parameters.ts'
import { type Answer, type Endpoint, type HeaderRow, json } from './endpoint.ts'
import { LOCATION } from './headers.ts'
import { named } from './schema-parts.ts'
import { BOUNDS } from './token-api.ts'

const text = z.string()
const instant = z.iso.datetime()

const SESSION = named('Session', {
  user: text,
  credential: z.enum(['session', 'password', 'token']).describe('With what the request has come'),
  origin: z
    .enum(['password', 'token'])
    .describe('With what the session was begun; without one, with what the request has come'),
  scopes: z.array(z.enum(SCOPES)),
  bounds: BOUNDS,
  formToken: text
    .nullable()
    .describe('What X-Capfleet-Form says with each change; null, as the times: asked without a session'),
  expiresAt: instant.nullable().describe('When the session ends, unless it is asked for before'),
  endsAt: instant.nullable().describe('When it ends, however often it is asked for'),
  version: text.describe('Of the gateway'),
  timeZone: text.describe('The zone of local times without TSZone, an IANA name'),
  exports: z.boolean().describe('Whether the gateway makes exports'),
})

const SESSION_END = named('SessionEnd', { ended: z.boolean() })

export const SESSION_PARAMETERS = {
  path: {
    name: 'Path',
    says: 'The folder of the page as the browser sees it, where a proxy puts it below a path: the cookie is sent there.',
    type: patternType(COOKIE_PATH, 'must be the path of a folder, such as /capture/'),
    default: '/',
    example: '/capture/',
  },
} as const satisfies ParameterRows

const SET_COOKIE: HeaderRow = {
  name: 'Set-Cookie',
  says: 'The cookie of the session: HttpOnly, SameSite=Strict, and Secure save on the machine of the browser.',
}

/** The answers that a file of the page has. */
function file(says: string, type: string): readonly Answer[] {
  return [
    { says, bodies: { [type]: 'bytes' } },
    { status: 304, says: 'It is still the one that If-None-Match names.', bodies: {} },
  ]
}

export const SESSION_API = {
  begin: {
    method: 'POST',
    path: '/v1/session',
    scope: 'known',
    filtered: 'nothing',
    others: 'nothing',
    isChange: true,
    group: 'Page',
    says:
      'Signs in: begins a session of the user whose password, or token, the header Authorization has. Requests with its ' +
      'cookie may do what the user may; those that change something need the header X-Capfleet-Form.',
    parameters: [SESSION_PARAMETERS],
    answers: [
      {
        ...json(SESSION, 'The session.'),
        status: 201,
        headers: [LOCATION, SET_COOKIE],
      },
    ],
    errors: ['out-of-bounds', 'user-quota', 'scheduler-unavailable', 'audit-unavailable'],
  },
  show: {
    method: 'GET',
    path: '/v1/session',
    scope: 'known',
    filtered: 'nothing',
    others: 'nothing',
    group: 'Page',
    says: 'Who asks, and what they may. A session that asks goes on from there (auth.sessions.idleS).',
    parameters: [{}],
    answers: [{ ...json(SESSION, 'The caller.'), headers: [SET_COOKIE] }],
    errors: [],
  },
  end: {
    method: 'DELETE',
    path: '/v1/session',
    scope: 'known',
    filtered: 'nothing',
    others: 'nothing',
    isChange: true,
    group: 'Page',
    says: 'Signs out: the session ends, with what runs by it, on all gateways within 5 s.',
    parameters: [{}],
    answers: [
      {
        ...json(SESSION_END, 'It has ended; false: there was none.'),
        headers: [SET_COOKIE],
      },
    ],
    errors: ['scheduler-unavailable', 'audit-unavailable'],
  },
  page: {
    method: 'GET',
    path: '/',
    scope: 'anyone',
    filtered: 'nothing',
    others: 'nothing',
    group: 'Page',
    says: 'The page for browsers, which asks for text/html; there is nothing for others.',
    answers: file('The page.', 'text/html'),
    errors: ['not-found'],
  },
  asset: {
    method: 'GET',
    path: '/assets/:name',
    scope: 'anyone',
    filtered: 'nothing',
    others: 'nothing',
    group: 'Page',
    says: 'A file of the page. Its name has a hash of what is in it, so that browsers need not ask for it again.',
    answers: file('The file.', '*/*'),
    errors: ['not-found'],
  },
} as const satisfies Record<string, Endpoint>
