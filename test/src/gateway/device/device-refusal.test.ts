import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deviceRefusal } from '../../../../src/gateway/device/device-refusal.ts'
import { ERROR_KINDS, type ErrorCode } from '../../../../src/shared/base/error.ts'

const refused = (status: number, problem: unknown, retryAfter?: string) =>
  deviceRefusal('nyc1', { status, retryAfter, body: JSON.stringify(problem) }).error

const CODES = Object.keys(ERROR_KINDS) as ErrorCode[]

test('no code of a device speaks of who the caller is, of the gateway, or of its load', () => {
  for (const code of [
    'unauthenticated',
    'insufficient-scope',
    'cross-site',
    'unknown-device',
    'unknown-request',
    'client-timeout',
    'internal-error',
    'replica-lost',
    'draining',
    'queue-timeout',
    'scheduler-unavailable',
    'device-unreachable',
    'device-timeout',
    'too-many-logins',
    'too-many-requests',
    'bad-config',
  ] as const) {
    for (const status of [400, ERROR_KINDS[code].status]) {
      const expected = status === 401 || status === 403 ? 'device-rejected' : 'device-protocol'
      assert.equal(refused(status, { code, detail: 'x' }).code, expected, `${code} ${status}`)
    }
  }
})

test('a code is taken over with the status that it has in the table, and with no other', () => {
  const own: ReadonlySet<ErrorCode> = new Set(['device-protocol', 'device-rejected'])
  const taken = CODES.filter(
    (code) => !own.has(code) && refused(ERROR_KINDS[code].status, { code }).code === code,
  )
  assert.ok(taken.includes('bad-bpf') && taken.includes('aged-out') && taken.includes('compiler-busy'))
  for (const code of taken) {
    for (const status of [302, 400, 401, 404, 410, 500, 503]) {
      const error = refused(status, { code })
      if (status !== ERROR_KINDS[code].status) assert.notEqual(error.code, code, `${code} ${status}`)
    }
  }
})

test('link types that do not match are reported with their captures, and malformed ones are left out', () => {
  const good = { linkType: 1, name: 'EN10MB', captures: ['a', 'b'] }
  const linkTypes = [
    good,
    null,
    5,
    { linkType: '1', captures: [] },
    { linkType: 2 },
    { ...good, captures: ['c', 7], x: 1 },
  ]
  assert.deepEqual(refused(409, { code: 'mixed-link-type', linkTypes }).details.members?.linkTypes, [
    good,
    { ...good, captures: ['c'] },
  ])
})

test("a caller's mistake is reported in the device's words, bounded and without control characters", () => {
  const problem = JSON.stringify({
    code: 'bad-bpf',
    detail: `syntax\r\nerror\u001b[2J${'x'.repeat(5_000)}`,
    param: 'FilterBPF',
    position: 4,
    candidates: ['a', 5, 'b'.repeat(1_000), ...Array(100).fill('c')],
    readers: 4,
    oldestNs: '17',
    devices: ['lon1'],
  })
  const deep = `"deep":${'['.repeat(20_000)}${']'.repeat(20_000)}`
  const { error } = deviceRefusal('nyc1', { status: 400, body: `${problem.slice(0, -1)},${deep}}` })
  assert.match(error.message, /^syntax error \[2Jx+$/)
  assert.ok(error.message.length <= 1_024)
  const { param, position, members } = error.details
  assert.deepEqual([param, position], ['FilterBPF', 4])
  const { candidates, ...rest } = members as { candidates: string[] }
  assert.deepEqual(rest, {
    StreamName: undefined,
    ScheduleName: undefined,
    readers: 4,
    oldestNs: '17',
    devices: ['nyc1'],
  })
  assert.deepEqual([candidates.length <= 16, candidates[1]?.length], [true, 128])
  assert.doesNotThrow(() => JSON.stringify(error.details))
  assert.equal(refused(400, { code: 'bad-bpf', param: 'a\r\nb', position: -1 }).details.param, undefined)
})

test('what only the device can fix is reported without its words, which are logged', () => {
  const body = JSON.stringify({ code: 'store-full', detail: 'no space on /srv/store' })
  const { error, hiddenText } = deviceRefusal('nyc1', { status: 507, body })
  assert.deepEqual(
    [error.code, error.message, hiddenText],
    ['store-full', 'device nyc1: The store has no space left', 'no space on /srv/store'],
  )
  const rejected = deviceRefusal('nyc1', { status: 403, body })
  assert.ok(rejected.error.code === 'device-rejected' && !rejected.error.message.includes('/srv'))
  assert.equal(deviceRefusal('nyc1', { status: 500, body: '<html>' }).error.code, 'device-protocol')
})

test('busy compilers stay what they are, with the time to wait that the device names', () => {
  const error = refused(503, { code: 'compiler-busy', detail: 'eight wait' }, '3')
  assert.deepEqual([error.code, error.details.retryAfterS, error.kind.blame], ['compiler-busy', 3, 'caller'])
  assert.equal(refused(503, { code: 'compiler-busy' }, '999999999').details.retryAfterS, 600)
  assert.equal(refused(503, { code: 'compiler-busy' }, 'Wed, 21 Oct').details.retryAfterS, undefined)
})

test('what operators can fix is reported: the path, a redirect, a login method that the gateway lacks', () => {
  const of = (answer: Parameters<typeof deviceRefusal>[1]) => deviceRefusal('nyc1', answer).error.message
  const path = '/api/v1/system/version'
  assert.equal(of({ status: 404, path, body: '' }), `device nyc1 answered ${path} with status 404`)
  assert.match(of({ status: 301, path, body: '' }), /redirects are not followed: configure the address/)
  const wants = (header: string) => of({ status: 401, body: '', wants: header })
  assert.match(
    wants('Digest realm="pcap", nonce="abc"'),
    /it requires Digest, but the gateway can only log in with/,
  )
  for (const header of ['', 'Basic realm="x"', 'Digest realm="x", Basic realm="y"', 'Bearer'])
    assert.match(wants(header), /check user, password and role/)
})
