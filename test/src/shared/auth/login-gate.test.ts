import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { LoginGate } from '../../../../src/shared/auth/login-gate.ts'
import type { CapfleetError } from '../../../../src/shared/base/error.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'

const SETTINGS = { waitingMax: 8, wrongMax: 3, pauseMaxS: 60 }
const WRONG = () => Promise.resolve(false)
const RIGHT = () => Promise.resolve(true)

function gateFor(waitingMax = SETTINGS.waitingMax): { gate: LoginGate; metrics: Metrics } {
  const metrics = new Metrics()
  return { gate: new LoginGate({ ...SETTINGS, waitingMax }, metrics), metrics }
}

async function refusalOf(login: Promise<boolean>): Promise<CapfleetError | undefined> {
  return login.then(
    () => undefined,
    (error: CapfleetError) => error,
  )
}

test('one password is checked at a time, and addresses take turns', async () => {
  const { gate } = gateFor()
  const looked: string[] = []
  let looking = 0
  const login = (address: string, name: string) =>
    gate.verify({ address, name }, async () => {
      looking += 1
      assert.equal(looking, 1)
      looked.push(`${address} ${name}`)
      await new Promise((resolve) => setImmediate(resolve))
      looking -= 1
      return true
    })
  await Promise.all([login('A', '1'), login('A', '2'), login('A', '3'), login('B', '4'), login('B', '5')])
  assert.deepEqual(looked, ['A 1', 'A 2', 'B 4', 'A 3', 'B 5'])
})

test('a waiting login is rejected unchecked once the same caller has failed too often', async () => {
  const { gate } = gateFor()
  const caller = { address: 'A', name: 'ann' }
  let looks = 0
  const look = async () => {
    looks += 1
    await new Promise((resolve) => setImmediate(resolve))
    return false
  }
  for (let wrong = 1; wrong < SETTINGS.wrongMax; wrong += 1)
    assert.equal(await gate.verify(caller, look), false)
  const together = await Promise.all([1, 2, 3].map(() => refusalOf(gate.verify(caller, look))))
  assert.deepEqual(
    together.map((error) => error?.code),
    [undefined, 'too-many-logins', 'too-many-logins'],
  )
  assert.equal(looks, SETTINGS.wrongMax)
})

test('a flood of wrong logins of one address keeps those of another waiting for two looks at most', async () => {
  const { gate } = gateFor()
  let looks = 0
  const look = async (right: boolean) => {
    looks += 1
    await new Promise((resolve) => setImmediate(resolve))
    return right
  }
  const flood = Array.from({ length: 300 }, (_, at) =>
    refusalOf(gate.verify({ address: 'A', name: `user${at}` }, () => look(false))),
  )
  assert.equal(await gate.verify({ address: 'B', name: 'ann' }, () => look(true)), true)
  assert.ok(looks <= 4, `${looks} looks: two before, its own, and one that has begun since`)
  const refused = (await Promise.all(flood)).filter((error) => error !== undefined)
  assert.equal(refused.length, 300 - 3, 'all but the one that was looked at and the two that waited')
  assert.ok(refused.every(({ code, details }) => code === 'too-many-logins' && details.retryAfterS === 1))
})

test('a name that was wrong too often pauses, for longer each time, from that address only', async () => {
  let nowMs = 1_000
  const clock = mock.method(performance, 'now', () => nowMs)
  try {
    const { gate } = gateFor()
    const ann = { address: 'A', name: 'ann' }
    for (let at = 0; at < SETTINGS.wrongMax; at++) assert.equal(await gate.verify(ann, WRONG), false)
    const never = () => assert.fail('nothing is looked at in a pause')
    const refused = await refusalOf(gate.verify(ann, never))
    assert.deepEqual([refused?.code, refused?.details.retryAfterS], ['too-many-logins', 1])
    assert.equal(await gate.verify({ ...ann, address: 'B' }, RIGHT), true, 'from elsewhere')
    assert.equal(await gate.verify({ ...ann, name: 'bob' }, RIGHT), true, 'another name')
    for (const pauseS of [2, 4, 8, 16, 32, 60, 60]) {
      nowMs += 60_000
      assert.equal(await gate.verify(ann, WRONG), false)
      assert.equal((await refusalOf(gate.verify(ann, never)))?.details.retryAfterS, pauseS)
    }
    nowMs += 60_000
    assert.equal(await gate.verify(ann, RIGHT), true)
    assert.equal(await gate.verify(ann, WRONG), false, 'a right one makes all good')
    assert.equal(await gate.verify(ann, RIGHT), true)
  } finally {
    clock.mock.restore()
  }
})

test('an address that tries many names pauses too', async () => {
  const { gate } = gateFor()
  for (let at = 0; at < 10 * SETTINGS.wrongMax; at++)
    assert.equal(await gate.verify({ address: 'A', name: `user${at}` }, WRONG), false)
  assert.equal(
    (await refusalOf(gate.verify({ address: 'A', name: 'other' }, RIGHT)))?.code,
    'too-many-logins',
  )
  assert.equal(await gate.verify({ address: 'B', name: 'other' }, RIGHT), true)
})

test('checks and refusals are counted', async () => {
  const { gate, metrics } = gateFor()
  const ann = { address: 'A', name: 'ann' }
  await gate.verify(ann, RIGHT)
  for (let at = 0; at < SETTINGS.wrongMax; at++) await gate.verify(ann, WRONG)
  await refusalOf(gate.verify(ann, RIGHT))
  const text = await metrics.text()
  for (const [result, count] of [
    ['right', 1],
    ['wrong', 3],
    ['refused', 1],
  ] as const)
    assert.match(text, new RegExp(`capfleet_logins_total\\{result="${result}"\\} ${count}\\n`))
})

test('a name that was right from an address is not paused for what other names do from there', async () => {
  const { gate } = gateFor()
  assert.equal(await gate.verify({ address: 'proxy', name: 'ann' }, RIGHT), true)
  for (let wrong = 0; wrong < 10 * SETTINGS.wrongMax; wrong += 1)
    await refusalOf(gate.verify({ address: 'proxy', name: `guess ${wrong}` }, WRONG))
  const stranger = await refusalOf(gate.verify({ address: 'proxy', name: 'stranger' }, RIGHT))
  assert.equal(stranger?.code, 'too-many-logins')
  assert.equal(await gate.verify({ address: 'proxy', name: 'ann' }, RIGHT), true)
})

test('a name that was right from an address waits for two checks at most during a flood of guesses from there', async () => {
  // A quarter of them, 25, may wait for the address.
  const { gate } = gateFor(100)
  const ann = { address: 'proxy', name: 'ann' }
  assert.equal(await gate.verify(ann, RIGHT), true)
  let looks = 0
  const look = async (right: boolean) => {
    looks += 1
    await new Promise((resolve) => setImmediate(resolve))
    return right
  }
  const flood = Array.from({ length: 300 }, (_, at) =>
    refusalOf(gate.verify({ address: 'proxy', name: `guess ${at}` }, () => look(false))),
  )
  assert.equal(await gate.verify(ann, () => look(true)), true)
  assert.ok(looks <= 4, `${looks} looks: two before, its own, and one that has begun since`)
  await Promise.all(flood)
})
