/** The web page and the documentation: their files, and the sessions of users who have signed in there. */
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
  credential: z
    .enum(['session', 'password', 'token'])
    .describe('The kind of credential that the request used'),
  origin: z
    .enum(['password', 'token'])
    .describe('The credential that started the session; without a session, that of the request'),
  scopes: z.array(z.enum(SCOPES)),
  bounds: BOUNDS,
  formToken: text
    .nullable()
    .describe(
      'The value of the header X-Capfleet-Form that each change needs; null, like both times, if the request has no session',
    ),
  expiresAt: instant
    .nullable()
    .describe('When the session ends, unless a request to this path renews it before'),
  endsAt: instant.nullable().describe('When the session ends in any case'),
  version: text.describe('The version of the gateway'),
  timeZone: text.describe('The zone of local times without TSZone, an IANA name'),
  exports: z.boolean().describe('Whether exports are enabled on the gateway'),
  demoTour: z.boolean().describe('Whether the page offers the tour of the demo'),
  dissector: text
    .nullable()
    .describe("The build in the path of the dissector's files; null: the page has no dissector"),
})

const SESSION_END = named('SessionEnd', { ended: z.boolean() })

export const SESSION_PARAMETERS = {
  path: {
    name: 'Path',
    says: 'The folder of the page as the browser sees it, if a proxy serves it below a path: the cookie is sent only there.',
    type: patternType(COOKIE_PATH, 'must be the path of a folder, such as /capture/'),
    default: '/',
    example: '/capture/',
  },
} as const satisfies ParameterRows

const SET_COOKIE: HeaderRow = {
  name: 'Set-Cookie',
  says: 'The session cookie: HttpOnly, SameSite=Strict, and Secure except when the gateway runs on the same machine as the browser.',
}

/** The answers for a file of the page. */
function file(says: string, type: string): readonly Answer[] {
  return [
    { says, bodies: { [type]: 'bytes' } },
    { status: 304, says: 'Not changed: it is the one that If-None-Match names.', bodies: {} },
  ]
}

export const SESSION_API = {
  begin: {
    method: 'POST',
    path: '/v1/session',
    scope: 'known',
    filtered: 'nothing',
    others: 'nothing',
    changes: 'session',
    group: 'Page',
    says:
      'Signs in: starts a session for the user whose password or token is in the header Authorization. Requests with its ' +
      "cookie have the user's rights; those that change something need the header X-Capfleet-Form.",
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
    says: "The caller and the caller's scopes and bounds. With a session, this request renews it (auth.sessions.idleS).",
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
    changes: 'session',
    group: 'Page',
    says: 'Signs out: ends the session, and everything that runs with it, on all gateways within 5 s.',
    parameters: [{}],
    answers: [
      {
        ...json(SESSION_END, 'The session has ended; false: there was no session.'),
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
    says: 'The web page, for clients that accept text/html; other clients get 404.',
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
    says: 'A file of the page. Its name contains a hash of its content, so browsers can cache it permanently.',
    answers: file('The file.', '*/*'),
    errors: ['not-found'],
  },
  dissector: {
    method: 'GET',
    path: '/dissector/:build/:name',
    scope: 'anyone',
    filtered: 'nothing',
    others: 'nothing',
    group: 'Page',
    says:
      "A file of the page's packet dissector, always compressed with gzip. The build is a hash of all its files, so " +
      'browsers can cache them permanently. LICENSE.txt and NOTICE.txt have its licence and the origin of its source.',
    answers: file('The file.', '*/*'),
    errors: ['not-found'],
  },
  docs: {
    method: 'GET',
    path: '/docs',
    scope: 'anyone',
    filtered: 'nothing',
    others: 'nothing',
    group: 'Page',
    says: 'Leads to /docs/, the documentation.',
    answers: [
      {
        status: 302,
        says: 'The documentation is in that folder.',
        bodies: {},
        headers: [{ name: 'Location', says: 'The folder of the documentation, relative to this path.' }],
      },
    ],
    errors: [],
  },
  docsFile: {
    method: 'GET',
    path: '/docs/{*path}',
    scope: 'anyone',
    filtered: 'nothing',
    others: 'nothing',
    group: 'Page',
    says: 'A page of the documentation, or a file that it loads; nothing is loaded from other hosts.',
    answers: file('The page or the file.', '*/*'),
    errors: ['not-found'],
  },
} as const satisfies Record<string, Endpoint>
