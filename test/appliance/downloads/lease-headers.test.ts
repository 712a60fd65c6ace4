// Leases by name: what gateways that share a device ask of it.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { eventually } from '../../support/eventually.ts'
import type { HttpAnswer, OpenAnswer } from '../../support/http-get.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

const SINGLE = '/api/v1/pcap/single?StreamName=big'
const STATUS = '/api/v1/system/status'
let appliance: TempAppliance

before(async () => {
  appliance = await startTempAppliance()
  const path = join(appliance.folder, 'big.pcap')
  await writeBigCapture(path)
  await appliance.importFiles('big', path)
})
after(() => appliance[Symbol.asyncDispose]())

const slotsBecome = (count: number): Promise<void> =>
  eventually(async () => (await appliance.slotsUsed()) === count, {
    limitMs: 1_000,
    message: `${count} slots used`,
  })
beforeEach(() => slotsBecome(0))

const under = (lease: string) => ({ headers: { 'Capfleet-Lease': lease } })
/** Nobody reads it. */
const open = (lease: string, query = ''): Promise<OpenAnswer> =>
  appliance.open(`${SINGLE}${query}`, under(lease))
/** One packet or so; gives its slot back by itself. */
const small = (lease: string): Promise<HttpAnswer> => appliance.get(`${SINGLE}&MaxPackets=1`, under(lease))
const refuse = (names: string, method = 'GET'): Promise<HttpAnswer> =>
  appliance.get(STATUS, { method, headers: { 'Capfleet-Refuse': names } })

test('a status without the question names no lease', async () => {
  using _red = await open('a-red')
  assert.equal((await appliance.get(STATUS)).headers['capfleet-serving'], undefined)
})

test('a served lease is listed and not refused', async () => {
  using _red = await open('b-red')
  using _blue = await open('b-blue')
  using _none = await appliance.open(SINGLE)
  const answer = await refuse('b-red, b-gone')
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['capfleet-serving'], 'b-red, b-blue')
  assert.equal((await small('b-red')).status, 200)
})

test('an empty question lists the leases and refuses none', async () => {
  assert.equal((await refuse('')).headers['capfleet-serving'], '')
  using _red = await open('c-red')
  assert.equal((await refuse(' ,, ')).headers['capfleet-serving'], 'c-red')
  assert.equal((await small('c-red')).status, 200)
})

test('a download under a refused lease is 409 lease-revoked; others are not touched', async () => {
  assert.equal((await refuse('d-red,d-blue')).headers['capfleet-serving'], '')
  for (const lease of ['d-red', 'd-blue']) {
    const refused = await small(lease)
    assert.deepEqual([refused.status, refused.json().code], [409, 'lease-revoked'])
  }
  assert.equal((await small('d-green')).status, 200)
  assert.equal((await appliance.get(`${SINGLE}&MaxPackets=1`)).status, 200)
})

test('a lease that is refused while its download waits for a slot never begins', async () => {
  const held = new DisposableStack()
  for (const lease of ['e-1', 'e-2', 'e-3', 'e-4']) held.use(await open(lease))
  const waiting = appliance.get(`${SINGLE}&Wait=30&MaxPackets=1`, under('e-red'))
  await eventually(async () => /slots_waiting 1\n/.test((await appliance.get('/metrics')).body.toString()), {
    limitMs: 1_000,
    message: 'the request waits',
  })
  assert.equal((await refuse('e-red')).headers['capfleet-serving'], 'e-1, e-2, e-3, e-4')
  held.dispose()
  const refused = await waiting
  assert.deepEqual([refused.status, refused.json().code], [409, 'lease-revoked'])
  await slotsBecome(0)
})

test('a malformed name is 400 with the header as param, and refuses nothing', async () => {
  for (const lease of ['', 'two words', 'a,b', 'x'.repeat(201), 'm\u00fcnchen']) {
    const { status, json } = await small(lease)
    assert.deepEqual([status, json().code, json().param], [400, 'bad-parameter', 'Capfleet-Lease'], lease)
  }
  for (const names of ['f-red, two words', `f-red,${'x'.repeat(201)}`, 'f-red,\u00fc']) {
    const { status, headers, json } = await refuse(names)
    assert.deepEqual([status, json().code, json().param], [400, 'bad-parameter', 'Capfleet-Refuse'], names)
    assert.equal(headers['capfleet-serving'], undefined)
  }
  assert.equal((await small('f-red')).status, 200)
  assert.equal((await small(`!${'~'.repeat(199)}`)).status, 200)
})

test('who may not download may read the status, and refuse nothing', async () => {
  for (const [user, refused] of [
    [undefined, 401],
    [appliance.credentials('viewer'), 403],
  ] as const) {
    assert.equal((await appliance.get(STATUS, { user })).status, 200)
    const answer = await appliance.get(STATUS, { user, headers: { 'Capfleet-Refuse': 'h-red' } })
    assert.deepEqual([answer.status, answer.headers['capfleet-serving']], [refused, undefined])
  }
  assert.equal((await small('h-red')).status, 200)
})

test('nobody can push out what others refused with one question', async () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `i-${i}`).join()
  assert.equal((await refuse(names(256))).status, 200)
  const { status, json } = await refuse(names(257))
  assert.deepEqual([status, json().param], [400, 'Capfleet-Refuse'])
})

test('HEAD refuses nothing and needs no lease', async () => {
  assert.equal((await refuse('g-red', 'HEAD')).headers['capfleet-serving'], undefined)
  assert.equal((await small('g-red')).status, 200)
  await refuse('g-blue')
  assert.equal((await appliance.get(SINGLE, { method: 'HEAD', ...under('g-blue') })).status, 200)
  assert.equal((await appliance.get(SINGLE, { method: 'HEAD', ...under('two words') })).status, 200)
})
