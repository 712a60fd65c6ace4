// The audit lines of requests: a real gateway over real appliances, with a worker.
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { AUDIT_EVENTS } from '../../../../../src/gateway/audit/audit-events.ts'
import { verifyAudit } from '../../../../../src/gateway/audit/verify-audit.ts'
import { AUDIT_PAGE } from '../../../../../src/shared/contract/audit-answers.ts'
import { type AuditEntry, auditEntries } from '../../../../support/access/temp-audit.ts'
import { eventually } from '../../../../support/eventually.ts'
import { type HttpAnswer, httpGet } from '../../../../support/http-get.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../../../support/processes/small-fleet.ts'
import { startTempWorker, type TempWorker } from '../../../../support/processes/temp-worker.ts'
import { USER_PASSWORD } from '../../../../support/suite-secrets.ts'

const RANGE = `TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${SMALL_FLEET_START_NS + 1_000_000_000n}`

type Role = 'viewer' | 'user' | 'full' | 'admin'

describe('the audit of a gateway', () => {
  let fleet: SmallFleet
  let worker: TempWorker
  let folder = ''

  before(async () => {
    fleet = await startSmallFleet([{ name: 'bounded', role: 'user', filter: 'udp' }])
    worker = await startTempWorker(fleet.gateway)
    folder = join(fleet.gateway.config.home, 'audit')
  })
  after(async () => {
    await worker[Symbol.asyncDispose]()
    await fleet[Symbol.asyncDispose]()
  })

  const ask = (role: Role, path: string, method = 'GET'): Promise<HttpAnswer> =>
    httpGet(`${fleet.gateway.url}${path}`, { method, headers: fleet.gateway.as[role] })
  const linesOf = async ({ headers }: HttpAnswer): Promise<readonly AuditEntry[]> =>
    (await auditEntries(folder)).filter(({ requestId }) => requestId === headers['capfleet-request-id'])
  /** The line may come a moment after the answer. */
  const endOf = async (answer: HttpAnswer, event: string): Promise<AuditEntry> => {
    let found: AuditEntry | undefined
    const isThere = async () => {
      found = (await linesOf(answer)).find((line) => line.event === event)
      return found !== undefined
    }
    await eventually(isThere, { message: event })
    return found as AuditEntry
  }

  for (const [name, path, devices] of [
    ['of two devices', `/api/v1/pcap/timerange?${RANGE}`, ['east', 'west']],
    ['of one device', `/api/v1/pcap/timerange?${RANGE}&Device=east`, ['east']],
    ['below a device', `/devices/west/pcap/single?StreamName=west-first`, ['west']],
  ] as const) {
    test(`has begin and end of a download ${name} when its client has it`, async () => {
      const answer = await ask('user', path)
      assert.equal(answer.status, 200)
      const [begun, ended, ...more] = await linesOf(answer)
      assert.deepEqual([begun?.event, ended?.event, more.length], ['download.begin', 'download.end', 0])
      assert.equal(`${begun?.path}?${begun?.query}`, path)
      assert.deepEqual(begun?.devices, devices)
      assert.deepEqual([begun?.user, begun?.credential, begun?.address], ['user', 'password', '127.0.0.1'])
      assert.deepEqual([ended?.outcome, ended?.bytes], ['complete', String(answer.body.length)])
      if (devices.length === 2) assert.equal(ended?.packets, '80')
    })
  }

  test('has nothing of a request that is refused before it is a download', async () => {
    const answer = await ask('user', `/api/v1/pcap/timerange?${RANGE}&Resume=${crypto.randomUUID()}`)
    assert.equal(answer.status, 404)
    assert.deepEqual(await linesOf(answer), [])
  })

  test('has a call that changes a device, with its end', async () => {
    const answer = await ask('full', '/sysmaster/capture_stop?Device=*&StreamName=nothing', 'POST')
    const ended = await endOf(answer, 'control.end')
    const [begun] = await linesOf(answer)
    assert.deepEqual(
      [begun?.event, begun?.method, begun?.path],
      ['control.begin', 'POST', '/sysmaster/capture_stop'],
    )
    assert.equal(begun?.query, 'Device=*&StreamName=nothing')
    assert.deepEqual(ended.devices, ['east', 'west'])
    assert.equal(ended.status, answer.status)
  })

  test('has a call whose path only the device knows', async () => {
    const answer = await ask('full', '/devices/east/api/v1/unlisted')
    const ended = await endOf(answer, 'control.end')
    assert.deepEqual([ended.status, ended.devices], [answer.status, ['east']])
  })

  test('has what a known user may not do', async () => {
    const answer = await ask('viewer', `/api/v1/pcap/timerange?${RANGE}`)
    assert.equal(answer.status, 403)
    const [refused, ...more] = await linesOf(answer)
    assert.deepEqual(
      [refused?.event, refused?.user, refused?.needed, more.length],
      ['access.refused', 'viewer', 'capture:download', 0],
    )
  })

  test('has a wrong password, but not the password', async () => {
    const answer = await httpGet(`${fleet.gateway.url}/v1/devices`, { user: 'full:wrong horse' })
    assert.equal(answer.status, 401)
    const [failed] = await linesOf(answer)
    assert.deepEqual([failed?.event, failed?.user, failed?.name], ['login.failed', null, 'full'])
  })

  test('has a link that is good no more as a failed login, and one that is good with its ticket', async () => {
    const target = encodeURIComponent(`/api/v1/pcap/timerange?${RANGE}`)
    const made = await ask('user', `/v1/tickets?For=${target}`, 'POST')
    assert.equal((await endOf(made, 'ticket.change.end')).status, 201)
    const { url } = made.json()
    const download = await httpGet(fleet.gateway.url + String(url))
    assert.match(String((await endOf(download, 'download.end')).credential), /^ticket:[0-9a-f-]{36}$/)
    const [failed] = await linesOf(await httpGet(fleet.gateway.url + String(url)))
    assert.deepEqual([failed?.event, failed?.user], ['login.failed', null])
    const ticket = String(url).split('Ticket=')[1] ?? ''
    assert.ok(!JSON.stringify(await auditEntries(folder)).includes(ticket))
  })

  test('counts what is more than 20 failed logins in a second', async () => {
    const headers = { authorization: 'Digest nonsense' }
    const before = (await auditEntries(folder)).length
    const startedMs = performance.now()
    for (let i = 0; i < 200; i += 1) await httpGet(`${fleet.gateway.url}/v1/devices`, { headers })
    const seconds = Math.floor((performance.now() - startedMs) / 1_000) + 2
    const told = (await auditEntries(folder)).slice(before)
    assert.ok(told.length > 10 && told.length < 22 * seconds, `${told.length} in less than ${seconds} s`)
  })

  test('has no secret, whatever parameter it is in', async () => {
    const answer = await ask(
      'user',
      `/api/v1/pcap/timerange?${RANGE}&password=canary-1&Access_Token=canary-2&x=y`,
    )
    const [begun] = await linesOf(answer)
    assert.equal(begun?.query, `${RANGE}&password=[redacted]&Access_Token=[redacted]&x=y`)
  })

  test('has a deleted capture, whatever surrounds its name', async () => {
    const path = '/devices/west/pcap/del?rand=://&StreamName=no-such-capture&x=@'
    const [begun] = await linesOf(await ask('full', path, 'DELETE'))
    assert.deepEqual([begun?.devices, begun?.capture], [['west'], 'no-such-capture'])
    assert.equal(begun?.query, 'rand=://&StreamName=no-such-capture&x=@')
  })

  test('has the range and the forced filter of a download of a bounded user', async () => {
    const answer = await httpGet(`${fleet.gateway.url}/api/v1/pcap/timerange?${RANGE}&FilterBPF=port+9`, {
      headers: fleet.gateway.basic('bounded'),
    })
    assert.equal(answer.status, 200, answer.body.toString())
    const [begun] = await linesOf(answer)
    assert.deepEqual(
      [begun?.beginNs, begun?.filters, begun?.forcedFilters],
      [String(SMALL_FLEET_START_NS), { FilterBPF: 'port 9' }, ['udp']],
    )
  })

  test('has a few refusals of a viewer at full speed, and the downloads of others meanwhile', async () => {
    const before = (await auditEntries(folder)).length
    const startedMs = performance.now()
    const refused = Array.from({ length: 300 }, () =>
      ask('viewer', `/api/v1/pcap/timerange?${RANGE}&x=${'x'.repeat(10_000)}`),
    )
    assert.equal((await ask('user', `/api/v1/pcap/timerange?${RANGE}`)).status, 200)
    for (const { status } of await Promise.all(refused)) assert.equal(status, 403)
    const seconds = Math.floor((performance.now() - startedMs) / 1_000) + 2
    const lines = (await auditEntries(folder)).slice(before).filter(({ event }) => event === 'access.refused')
    assert.ok(lines.length > 0 && lines.length <= 2 * seconds, `${lines.length} in less than ${seconds} s`)
    assert.ok(lines.every((line) => JSON.stringify(line).length < 2_000))
  })

  test('has who read it, and the list of users', async () => {
    for (const path of ['/v1/audit?Limit=1', '/v1/users']) {
      const answer = await ask('admin', path)
      assert.equal(answer.status, 200)
      const [read] = await linesOf(answer)
      assert.deepEqual(
        [read?.event, read?.user, `${read?.path}`],
        ['access.read', 'admin', path.split('?')[0]],
      )
    }
  })

  test('has an export from its order to its files', async () => {
    const ordered = await ask('user', `/v1/exports?${RANGE}`, 'POST')
    assert.equal(ordered.status, 202, ordered.body.toString())
    const { id } = ordered.json() as { id: string }
    const change = await endOf(ordered, 'export.change.end')
    assert.deepEqual(
      [change.status, change.location, change.devices],
      [202, `/v1/exports/${id}`, ['east', 'west']],
    )
    const state = async () => (await ask('user', `/v1/exports/${id}`)).json().state
    await eventually(async () => (await state()) === 'complete', { message: 'the export' })
    const ended = (await auditEntries(folder)).find(
      (line) => line.event === 'export.ended' && line.export === id,
    )
    assert.deepEqual([ended?.user, ended?.outcome, ended?.packets], ['user', 'complete', '80'])

    const file = await ask('user', `/v1/exports/${id}/file`)
    assert.deepEqual(
      (await linesOf(file)).map(({ event, bytes, outcome }) => [event, bytes, outcome]),
      [
        ['export.file.begin', undefined, undefined],
        ['export.file.end', file.body.length, 'complete'],
      ],
    )
    const manifest = await ask('user', `/v1/exports/${id}/manifest`)
    assert.deepEqual(
      (await linesOf(manifest)).map(({ event }) => event),
      ['access.read'],
    )
    const removed = await ask('user', `/v1/exports/${id}`, 'DELETE')
    await endOf(removed, 'export.change.end')
  })

  test('has a download that becomes an export, and a schedule', async () => {
    const ordered = await ask('user', `/api/v1/pcap/timerange?${RANGE}&Queue=job`)
    assert.equal(ordered.status, 202)
    assert.equal((await endOf(ordered, 'export.change.end')).location, ordered.headers.location)
    const schedule = await ask('user', '/v1/schedules?Cron=0+*+*+*+*&TSBegin=-1h&TSEnd=now', 'POST')
    assert.equal(schedule.status, 201)
    await endOf(schedule, 'schedule.change.end')
  })

  test('is listed for who may read it, page by page', async () => {
    assert.equal((await ask('user', '/v1/audit')).status, 403)
    const nameOf = ({ at, event, seq }: Record<string, unknown>) => `${at} ${event} ${seq}`
    const written = async () => (await auditEntries(folder)).map(nameOf)
    const writtenBefore = await written()
    const seen: string[] = []
    let path: string | undefined = '/v1/audit?Limit=7'
    while (path !== undefined) {
      const answer = await ask('full', path)
      assert.equal(answer.status, 200, answer.body.toString())
      const { entries, next } = AUDIT_PAGE.parse(answer.json())
      seen.push(...entries.map(nameOf))
      path = next === null ? undefined : `/v1/audit?Limit=7&After=${encodeURIComponent(next)}`
    }
    assert.equal(new Set(seen).size, seen.length)
    // The end of a download may come while the audit is read.
    const writtenAfter = new Set(await written())
    assert.ok(writtenBefore.every((entry) => seen.includes(entry)))
    assert.ok(seen.every((entry) => writtenAfter.has(entry)))
  })

  test('is listed by user, event, device and time', async () => {
    const listed = async (query: string) =>
      AUDIT_PAGE.parse((await ask('full', `/v1/audit?Limit=1000&${query}`)).json()).entries
    const exports = await listed('Event=export&User=user')
    assert.ok(
      exports.length > 5 &&
        exports.every(({ event, user }) => event.startsWith('export.') && user === 'user'),
    )
    const west = await listed('Device=west&Event=download.begin')
    assert.ok(west.length > 1 && west.every(({ devices }) => (devices as string[]).includes('west')))
    assert.deepEqual(await listed('To=-1h'), [])
    assert.ok((await listed('From=-1h')).length > 20)
    for (const bad of ['From=someday', 'After=x', 'Event=UPPER', 'Limit=0'])
      assert.equal((await ask('full', `/v1/audit?${bad}`)).status, 400, bad)
  })

  test('verifies, has no undescribed event, and no secret', async () => {
    assert.ok((await verifyAudit(folder)).isWhole)
    for (const { event } of await auditEntries(folder)) assert.ok(event in AUDIT_EVENTS, event)
    const names = (await readdir(folder)).filter((name) => name.endsWith('.jsonl'))
    const text = (await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))).join('')
    for (const secret of [USER_PASSWORD, btoa(`user:${USER_PASSWORD}`), 'wrong horse', 'canary', 'nonsense'])
      assert.ok(!text.includes(secret), secret)
  })

  test('refuses downloads and changes while it cannot be written, and takes them when it can', async () => {
    await rm(folder, { recursive: true })
    const download = () => ask('user', `/api/v1/pcap/timerange?${RANGE}`)
    // A download whose begin was written and whose end cannot be written is cut.
    const isRefused = () =>
      download().then(
        ({ status }) => status === 503,
        () => false,
      )
    await eventually(isRefused, { message: 'a refusal' })
    const refused = await download()
    assert.equal(refused.json().code, 'audit-unavailable')
    assert.equal(refused.headers['retry-after'], '5')
    const order = await ask('user', `/v1/exports?${RANGE}`, 'POST')
    assert.equal(order.json().code, 'audit-unavailable')
    assert.equal((await ask('user', '/v1/devices')).status, 200)
    const metrics = (await ask('viewer', '/metrics')).body.toString()
    assert.match(metrics, /^capfleet_audit_writable 0$/m)
    await mkdir(folder, { mode: 0o700 })
    assert.equal((await download()).status, 200)
  })

  test('keeps an export from ending while it cannot be written', async () => {
    const stateOf = async (ordered: HttpAnswer) => {
      const { state, error } = (await ask('user', String(ordered.headers.location))).json()
      return `${state} ${(error as { code: string } | null)?.code ?? ''}`.trimEnd()
    }
    const PAUSED = 'paused audit-unavailable'
    let shown = ''
    let ordered: HttpAnswer
    // The download ends when its range is over: after the folder is gone, unless the machine is so busy that it takes
    // longer.
    for (let aheadMs = 4_000; ; aheadMs *= 2) {
      const endsAt = new Date(Date.now() + aheadMs).toISOString()
      ordered = await ask('user', `/v1/exports?TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${endsAt}`, 'POST')
      assert.equal(ordered.status, 202, ordered.body.toString())
      await rm(folder, { recursive: true })
      const isDecided = async () => {
        shown = await stateOf(ordered)
        return shown === PAUSED || shown === 'complete'
      }
      await eventually(isDecided, { message: 'the pause' })
      await mkdir(folder, { mode: 0o700 })
      if (shown === PAUSED) break
    }
    await eventually(async () => (await stateOf(ordered)) === 'complete', { message: 'the export' })
    const { id } = ordered.json()
    const ended = (await auditEntries(folder)).filter((entry) => entry.export === id)
    assert.deepEqual(
      ended.filter(({ event }) => event === 'export.ended').map(({ outcome }) => outcome),
      ['complete'],
    )
  })
})
