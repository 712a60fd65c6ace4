// Every route of both programs, requested by every kind of caller: access is exactly what the rows and the roles say.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { APPLIANCE_ROUTES } from '../../../appliance/appliance-routes.ts'
import { routesWith } from '../../../src/gateway/routes/routes.ts'
import { type Access, ROLES, SCOPES, SCOPES_OF_ROLE, type Scope } from '../../../src/shared/base/scopes.ts'
import type { Endpoint } from '../../../src/shared/contract/endpoint.ts'
import { httpGet, httpOpen } from '../../support/http-get.ts'
import { type SmallFleet, startSmallFleet } from '../../support/processes/small-fleet.ts'

interface Asker {
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  /** undefined: these credentials belong to no user. */
  readonly scopes: ReadonlySet<Scope> | undefined
  /** Rows outside the caller's bounds, and their answers. */
  readonly outside?: { readonly status: 403 | 404; readonly isRow: (row: Endpoint) => boolean }
}

interface Program {
  readonly name: string
  readonly table: readonly Endpoint[]
  readonly url: string
  /** Whether the system reads are anonymous. */
  readonly isSystemOpen: boolean
  readonly askers: readonly Asker[]
}

const NOBODY: readonly Asker[] = [
  { name: 'nobody', headers: {}, scopes: undefined },
  { name: 'a token of nobody', headers: { authorization: 'Bearer e30.e30.e30' }, scopes: undefined },
  { name: 'a scheme of its own', headers: { authorization: 'Digest username="full"' }, scopes: undefined },
]

/** By day not everyone: access is decided by the row and the caller, and then by the method. */
function alsoSendsHead({ name, scopes }: Asker): boolean {
  return process.env.CAPFLEET_LONG === '1' || name === 'nobody' || (scopes !== undefined && scopes.size > 1)
}

describe('who may do what', () => {
  let fleet: SmallFleet
  const programs: Program[] = []

  before(async () => {
    fleet = await startSmallFleet()
    const [appliance] = fleet.appliances
    assert.ok(appliance)
    const known = (headersOf: (role: (typeof ROLES)[number]) => Readonly<Record<string, string>>) =>
      ROLES.map((role) => ({ name: role, headers: headersOf(role), scopes: SCOPES_OF_ROLE[role] }))
    const basic = (role: (typeof ROLES)[number]) => ({
      authorization: `Basic ${btoa(appliance.credentials(role))}`,
    })
    programs.push(
      {
        name: 'appliance',
        table: APPLIANCE_ROUTES,
        url: appliance.url,
        isSystemOpen: true,
        askers: [...NOBODY, ...known(basic)],
      },
      {
        name: 'gateway',
        table: routesWith([]),
        url: fleet.gateway.url,
        isSystemOpen: false,
        askers: [...NOBODY, ...known((role) => fleet.gateway.basic(role)), ...(await tokenAskers(fleet))],
      },
    )
  })
  after(() => fleet?.[Symbol.asyncDispose]())

  test('matches the rows of both tables, for each role and without a login', async (t) => {
    let asked = 0
    for (const program of programs) {
      for (const row of program.table) {
        const hasHead = row.method === 'GET' && row.changes === undefined
        for (const method of hasHead ? ['GET', 'HEAD'] : [row.method]) {
          const askers = method === 'HEAD' ? program.askers.filter(alsoSendsHead) : program.askers
          for (const asker of askers) {
            const status = await statusOf(program, row, method, asker)
            const isAllowed = status !== 401 && status !== 403
            const expected = mayUse(row, asker, program)
            const what = `${program.name} ${method} ${row.path}, ${asker.name}`
            if (expected === 200) assert.ok(isAllowed, `${what}: ${status}`)
            else assert.equal(status, expected, what)
            asked += 1
          }
        }
      }
    }
    t.diagnostic(`${asked} requests`)
  })
})

/** Most requested things do not exist. Access is decided before that, and nothing is changed. */
async function statusOf(
  program: Program,
  row: Endpoint,
  method: string,
  { headers, outside }: Asker,
): Promise<number> {
  const path = row.path
    .replace('/:device', '/east')
    .replace(':id', '00000000-0000-4000-8000-000000000000')
    .replace('{*path}', 'no/such/path')
  const query = outside?.isRow(row) ? '' : '?NoSuchParameter=1&Strict=1'
  using answer = await httpOpen(`${program.url}${path}${query}`, { method, headers })
  return answer.response.statusCode ?? 0
}

function mayUse(row: Endpoint, { scopes, outside }: Asker, program: Program): 200 | 401 | 403 | 404 {
  const status = letIn(row.scope, scopes, program)
  return status === 200 && outside?.isRow(row) ? outside.status : status
}

function letIn(
  access: Access,
  scopes: ReadonlySet<Scope> | undefined,
  { isSystemOpen }: Program,
): 200 | 401 | 403 {
  if (access === 'anyone' || access === 'metrics' || (access === 'system' && isSystemOpen)) return 200
  if (scopes === undefined) return 401
  if (access === 'known') return 200
  return scopes.has(access === 'system' ? 'device:read' : access) ? 200 : 403
}

/** Tokens with each single scope, tokens with bounds, and worthless tokens. */
async function tokenAskers({ gateway }: SmallFleet): Promise<readonly Asker[]> {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const mint = async (query: string, headers: Asker['headers'] = gateway.basic('admin')) => {
    const answer = await httpGet(`${gateway.url}/v1/tokens?${query}`, { method: 'POST', headers })
    assert.equal(answer.status, 201, query)
    return answer.json() as { readonly id: string; readonly token: string }
  }
  const ofScopes = SCOPES.map(async (scope) => ({
    name: `a token of ${scope}`,
    headers: bearer((await mint(`Scopes=${scope}`)).token),
    scopes: new Set([scope]),
  }))
  const all = new Set(SCOPES)
  const [west, filtered, parent] = await Promise.all([mint('Devices=west'), mint('Filter=udp'), mint('')])
  const child = await mint('', bearer(parent.token))
  const revoking = { method: 'DELETE', headers: gateway.basic('admin') }
  assert.equal((await httpGet(`${gateway.url}/v1/tokens/${parent.id}`, revoking)).status, 200)
  return [
    ...(await Promise.all(ofScopes)),
    {
      name: 'a token for another device',
      headers: bearer(west.token),
      scopes: all,
      outside: { status: 404, isRow: ({ path }) => /^(\/v1)?\/devices\/:device/.test(path) },
    },
    {
      name: 'a token with a filter',
      headers: bearer(filtered.token),
      scopes: all,
      // The metrics are anonymous here.
      outside: { status: 403, isRow: ({ filtered, scope }) => filtered === 'refused' && scope !== 'metrics' },
    },
    { name: 'a token that was revoked', headers: bearer(parent.token), scopes: undefined },
    { name: 'a token of one that was revoked', headers: bearer(child.token), scopes: undefined },
    { name: 'half a token', headers: bearer(west.token.slice(0, -20)), scopes: undefined },
  ]
}
