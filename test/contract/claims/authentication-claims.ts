/** Section 5 of the decisions: who may do what. */

import { APPLIANCE_PASSWORD } from '../../support/suite-secrets.ts'
import { type Claim, FLEET_ONLY, heldBy, row, THROUGH_GATEWAY } from '../claim.ts'
import { ALPHA } from '../contract-captures.ts'
import { SINGLE, START_CAPTURE, STOP_CAPTURE } from '../contract-queries.ts'

const ROUTES_TEST = 'test/appliance/appliance-routes.test.ts'
const LISTS = [
  '/stream/list',
  `/stream/ssize?StreamName=${ALPHA}`,
  '/sysmaster/capture_status',
  '/sysmaster/status',
  '/sysmaster/stats_summary',
]
const CHANGES = [`${START_CAPTURE}?StreamName=x`, STOP_CAPTURE, '/pcap/del?StreamName=nosuchcapture']

export const AUTHENTICATION_CLAIMS: readonly Claim[] = [
  row(
    'D5-1',
    'Callers log in by HTTP Basic.',
    { get: '/stream/list', as: 'viewer' },
    { get: '/stream/list', as: 'nobody', problem: ['unauthenticated'] },
    {
      get: '/stream/list',
      as: 'nobody',
      headers: { authorization: `Basic ${btoa('full:wrong password')}` },
      problem: ['unauthenticated'],
    },
  ),
  heldBy(
    'test/src/shared/auth/edit-users-file.test.ts',
    'the file holds no password and is readable by its owner only',
    'D5-2',
    'Users are in a file of argon2id hashes.',
  ),
  row('D5-3', 'A viewer sees lists and states.', ...LISTS.map((get) => ({ get, as: 'viewer' as const })), {
    get: SINGLE,
    as: 'viewer',
    problem: ['insufficient-scope'],
  }),
  row('D5-4', 'A download needs a user.', { get: SINGLE, as: 'user' }),
  row(
    'D5-5',
    'Starts, stops and deletes need full.',
    ...CHANGES.map((get) => ({ get, as: 'user' as const, problem: ['insufficient-scope'] as const })),
  ),
  row('D5-6', 'The five system reads of a device are open, unless auth.anonymousSystem is false.', {
    get: '/api/v1/system/version',
    as: 'nobody',
    out: {
      below: 'the gateway has its own setting; D8-12 has it',
      fleet: 'the gateway has its own setting; D8-12 has it',
    },
  }),
  heldBy(
    ROUTES_TEST,
    'auth.anonymousSystem=false closes what is open otherwise, and the metrics are closed by default',
    'D5-7',
    'auth.anonymousSystem=false closes them.',
  ),
  heldBy(
    ROUTES_TEST,
    'without a user the appliance does not start',
    'D5-8',
    'There is no default password: without a user the program does not start.',
  ),
  row(
    'D5-9',
    'Callers of the same machine are no exception.',
    { get: '/stream/list', as: 'nobody', problem: ['unauthenticated'] },
    { get: SINGLE, as: 'nobody', problem: ['unauthenticated'] },
  ),
  heldBy(
    'test/src/gateway/auth/token-verifier.test.ts',
    'there are enough attacks',
    'D5-10',
    'The gateway takes a JWT as bearer, with pinned algorithms, iss, aud and exp.',
  ),
  row(
    'D5-11',
    'The gateway takes Basic for scripts.',
    { get: '/v1/devices', as: 'viewer', out: FLEET_ONLY },
    { get: '/v1/devices', as: 'nobody', problem: ['unauthenticated'], out: FLEET_ONLY },
  ),
  heldBy(
    'test/src/gateway/routes/access/token-handlers.test.ts',
    'are good for what they were made for, and no more',
    'D5-12',
    'POST /v1/tokens mints tokens.',
  ),
  heldBy(
    'test/e2e/access/access-matrix.test.ts',
    'matches the rows of both tables, for each role and without a login',
    'D5-13',
    'There is a scope for each kind of call.',
  ),
  heldBy(
    'test/src/gateway/routes/request/caller-bounds.test.ts',
    'get from all of theirs what the whole fleet would give of them',
    'D5-14',
    'Claims limit devices, filter, time span and bytes.',
  ),
  heldBy(
    'test/src/gateway/routes/access/ticket-handlers.test.ts',
    'admit one download, without credentials, and HEAD before it',
    'D5-15',
    'One-time tickets serve links.',
  ),
  row(
    'D5-16',
    'The gateway has the credentials of each device; those of a caller reach none.',
    {
      get: '/stream/list',
      as: 'nobody',
      headers: { authorization: `Basic ${btoa(`full:${APPLIANCE_PASSWORD}`)}` },
      problem: ['unauthenticated'],
      out: THROUGH_GATEWAY,
    },
    { get: '/stream/list', as: 'viewer', out: THROUGH_GATEWAY },
  ),
]
