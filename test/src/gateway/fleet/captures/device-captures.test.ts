// The captures of one device: requested in parts or as a whole, shared among callers, and read in turns.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { DeviceCaptures } from '../../../../../src/gateway/fleet/captures/device-captures.ts'
import type { ListQuestion } from '../../../../../src/gateway/fleet/captures/list-question.ts'
import type { Fleet, FleetOptions } from '../../../../../src/gateway/fleet/fleet.ts'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { tempFleet } from '../../../../support/devices/temp-fleet.ts'

const STAYING = new AbortController().signal
const FRESH = { maxAgeMs: 0, signal: STAYING }
const ANY: ListQuestion = { limit: 100, kept: { entries: 100, bytes: 1_000_000 } }

const capture = (name: string, startNs: number) => ({ StreamName: name, StartTS: String(startNs) })

const LIMIT_MS = 60_000

/** Makes time pass for this process only when the returned function is called. */
function mockedTime(t: TestContext): (ms: number) => void {
  const startMs = performance.now()
  let passedMs = 0
  t.mock.method(performance, 'now', () => startMs + passedMs)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  return (ms) => {
    passedMs += ms
    t.mock.timers.tick(ms)
  }
}

describe('the captures of a device', () => {
  let device: FakeDevice
  let silent: FakeDevice
  let fleet: Fleet
  let captures: DeviceCaptures

  const open = (options: Partial<FleetOptions> = {}) => {
    fleet = tempFleet([device, silent], options)
    captures = fleet.get('d0').captures
  }
  const asked = () => device.requests.map(({ url }) => url)
  const namesOf = async (question: ListQuestion) =>
    (await captures.page(question, STAYING)).captures.map(({ name }) => name)

  beforeEach(async () => {
    device = await FakeDevice.start('d0', Buffer.alloc(24))
    silent = await FakeDevice.start('d1', Buffer.alloc(24))
    open()
  })
  afterEach(async () => {
    await fleet[Symbol.asyncDispose]()
    await device[Symbol.asyncDispose]()
    await silent[Symbol.asyncDispose]()
  })

  test('come in parts from a device that says that it gives them', async () => {
    device.behaviour = { givesParts: true }
    device.captures = [capture('a', 1), capture('b', 2), capture('c', 3)]
    const page = await captures.page({ ...ANY, limit: 2 }, STAYING)
    assert.deepEqual([page.captures.map(({ name }) => name), page.hasMore], [['c', 'b'], true])
    assert.deepEqual(await namesOf({ ...ANY, limit: 2, toNs: 3n, afterName: 'b' }), ['a'])
    assert.deepEqual(asked(), ['/stream/list?Limit=2', '/stream/list?Limit=2&To=3'])
  })

  for (const [what, behaviour] of [
    ['does not know parameters', {}],
    ['refuses parameters', { refusesParts: true }],
  ] as const) {
    test(`are chosen from the whole list of a device that ${what}`, async () => {
      device.behaviour = behaviour
      device.captures = ['a', 'b', 'c', 'd'].map((name, at) => capture(name, at))
      const question = { ...ANY, limit: 2, kept: { entries: 2, bytes: 1_000_000 } }
      const page = await captures.page(question, STAYING)
      assert.deepEqual([page.captures.map(({ name }) => name), page.hasMore], [['d', 'c'], true])
      assert.deepEqual(await namesOf({ ...question, toNs: 3n, afterName: 'c' }), ['b', 'a'])
      assert.deepEqual(
        asked(),
        ['/stream/list?Limit=2', '/stream/list', '/stream/list'],
        'it is asked once only',
      )
    })
  }

  test('come in parts again from a device that has learnt it, and as a whole from one that has forgotten it', async () => {
    device.captures = [capture('a', 1)]
    const ask = () => namesOf({ ...ANY, limit: 2 })
    await ask()
    device.behaviour = { givesParts: true }
    // The answer to the request for the whole list says so.
    await ask()
    await ask()
    device.behaviour = {}
    assert.deepEqual(await ask(), ['a'])
    const [part, whole] = ['/stream/list?Limit=2', '/stream/list']
    assert.deepEqual(asked(), [part, whole, whole, part, part, whole])
  })

  test('are all found when more began together than are asked for at once', async () => {
    device.behaviour = { givesParts: true }
    device.captures = Array.from({ length: 50 }, (_, at) => capture(`c${String(at).padStart(2, '0')}`, 7))
    assert.deepEqual(await namesOf({ ...ANY, limit: 4, toNs: 8n, afterName: 'c39' }), [
      ...Array.from({ length: 10 }, (_, at) => `c${40 + at}`),
    ])
  })

  test('are kept up to a length of their texts, and at least one of them', async () => {
    const Desc = 'x'.repeat(1_000)
    device.captures = ['a', 'b', 'c'].map((name, at) => ({ ...capture(name, at), Desc }))
    const kept = async (bytes: number) => {
      const page = await captures.page({ ...ANY, kept: { entries: 100, bytes } }, STAYING)
      return [page.captures.map(({ name }) => name).join(''), page.hasMore]
    }
    assert.deepEqual(
      [await kept(1), await kept(2_500), await kept(9_000)],
      [
        ['c', true],
        ['cb', true],
        ['cba', false],
      ],
    )
  })

  for (const givesParts of [true, false]) {
    test(`are found by full name, then by base name (parts: ${givesParts})`, async () => {
      device.behaviour = { givesParts }
      device.captures = ['lab', 'lab_20260101_1000', 'wan_20260101_1000'].map((name, at) => capture(name, at))
      const found = async (name: string) => (await captures.holding(name, FRESH)).match
      assert.deepEqual(
        [await found('lab'), await found('wan'), await found('wan_20260101_1000'), await found('la')],
        ['full', 'base', 'full', 'none'],
      )
      const named = await namesOf({ ...ANY, name: 'lab' })
      assert.deepEqual(named, ['lab'], 'a full name means its capture alone')
      assert.deepEqual(await namesOf({ ...ANY, name: 'wan' }), ['wan_20260101_1000'])
    })
  }

  test('are requested once for all concurrent callers, and a caller that leaves affects no other', async () => {
    device.behaviour = { givesParts: true }
    device.captures = [capture('lab', 1)]
    const leaving = new AbortController()
    const left = captures.holding('lab', { maxAgeMs: 1_000, signal: leaving.signal })
    const all = Array.from({ length: 100 }, () =>
      captures.holding('lab', { maxAgeMs: 1_000, signal: STAYING }),
    )
    leaving.abort(new CapfleetError('draining', 'gone'))
    await assert.rejects(left, { code: 'draining' })
    for (const { match } of await Promise.all(all)) assert.equal(match, 'full')
    assert.equal(device.requests.length, 1)
    await captures.holding('lab', FRESH)
    captures.forget()
    await captures.holding('lab', { maxAgeMs: 60_000, signal: STAYING })
    assert.equal(device.requests.length, 3)
  })

  test('are requested twice, one after another, however many callers need an answer newer than their question', async () => {
    device.behaviour = { givesParts: true }
    device.captures = [capture('old', 1)]
    const early = captures.page(ANY, STAYING)
    // Later requests must see what changes from now on.
    await device.until(() => device.requests.length === 1)
    device.captures = [capture('new', 2)]
    const late = await Promise.all(Array.from({ length: 100 }, () => namesOf(ANY)))
    for (const names of late) assert.deepEqual(names, ['new'])
    await early
    assert.equal(device.requests.length, 2)
  })

  test('are not waited for any more when all callers have left', async () => {
    device.behaviour = { silent: true }
    const leaving = new AbortController()
    const left = [captures.page(ANY, leaving.signal), captures.page(ANY, leaving.signal)]
    await device.until(() => device.requests.length === 1)
    leaving.abort(new CapfleetError('draining', 'gone'))
    for (const one of left) await assert.rejects(one, { code: 'draining' })
    device.behaviour = {}
    assert.deepEqual(await namesOf(ANY), [], 'the next caller does not wait for the silent answer')
  })

  test('that could not be read are not kept', async () => {
    device.behaviour = { body: Buffer.from('<html>') }
    await assert.rejects(captures.holding('lab', FRESH), { code: 'device-protocol' })
    device.behaviour = {}
    assert.equal((await captures.holding('lab', { maxAgeMs: 60_000, signal: STAYING })).match, 'none')
  })

  test('nothing of a list is kept when its device stops in the middle of it', async () => {
    await fleet[Symbol.asyncDispose]()
    open({ probeTimeoutMs: 500, listTimeoutMs: 500 })
    device.captures = Array.from({ length: 1_000 }, (_, at) => capture(`c${at}`, at))
    device.behaviour = { stopsAfterBytes: 20_000 }
    await assert.rejects(captures.page(ANY, STAYING), { code: 'device-timeout', message: /^device d0 / })
    assert.equal(fleet.largeAnswers.reading, 0)
  })
})

test("a device's time does not run while others are read", async (t) => {
  // First of all: whatever sets a timer must also clear it in mocked time.
  const pass = mockedTime(t)
  await using device = await FakeDevice.start('d0', Buffer.alloc(24))
  await using silent = await FakeDevice.start('d1', Buffer.alloc(24))
  await using fleet = tempFleet([device, silent], {
    probeTimeoutMs: LIMIT_MS,
    listTimeoutMs: LIMIT_MS,
    largeAnswersMax: 1,
  })
  device.captures = [capture('lab', 1)]
  const turn = await fleet.largeAnswers.begin('other', STAYING)
  const waiting = fleet.get('d0').captures.page(ANY, STAYING)
  while (fleet.largeAnswers.waiting === 0) await setImmediate()
  pass(10 * LIMIT_MS)
  // A time limit that has passed takes effect when the sockets have been read (JoinedSignal).
  await setImmediate()
  await setImmediate()
  turn[Symbol.dispose]()
  assert.equal((await waiting).captures.length, 1)
  // While its own answer is read, the same time counts.
  silent.behaviour = { silentBelow: '/stream/list' }
  const late = fleet.get('d1').captures.page(ANY, STAYING)
  await silent.until(() => silent.requests.length > 0)
  pass(LIMIT_MS)
  await assert.rejects(late, { code: 'device-timeout' })
})
