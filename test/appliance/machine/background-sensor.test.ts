import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BackgroundSensor } from '../../../appliance/machine/background-sensor.ts'
import { eventually } from '../../support/eventually.ts'

const soon = { message: 'it happens' }

test('reads at once and again, and shows the last reading', async () => {
  let count = 0
  using sensor = new BackgroundSensor({ everyMs: 5, limitMs: 100, read: async () => ++count })
  assert.equal(sensor.value, undefined)
  await sensor.refresh()
  assert.equal(sensor.value, 1)
  await eventually(() => (sensor.value ?? 0) >= 3, soon)
})

test('a sensor that fails has no value, and has one again when it works again', async () => {
  let isBroken = true
  const read = async (): Promise<string> => {
    if (isBroken) throw new Error('broken')
    return 'well'
  }
  using sensor = new BackgroundSensor({ everyMs: 60_000, limitMs: 100, read })
  await sensor.refresh()
  assert.equal(sensor.value, undefined)
  isBroken = false
  await sensor.refresh()
  assert.equal(sensor.value, 'well')
  isBroken = true
  await sensor.refresh()
  assert.equal(sensor.value, undefined)
})

test('a hanging sensor is awaited no longer than its limit, asked once, and stopped', async () => {
  let asked = 0
  let told = false
  const read = (signal: AbortSignal): Promise<number> => {
    asked += 1
    signal.addEventListener('abort', () => {
      told = true
    })
    return new Promise(() => undefined)
  }
  using sensor = new BackgroundSensor({ everyMs: 5, limitMs: 50, read })
  await sensor.refresh()
  await sensor.refresh()
  await eventually(() => told, soon)
  assert.deepEqual([sensor.value, asked], [undefined, 1])
})

test('a reading that is late leaves the one before', async () => {
  let isLate = false
  const aborted = Promise.withResolvers<void>()
  const read = async (signal: AbortSignal): Promise<number> => {
    if (!isLate) return 7
    signal.addEventListener('abort', () => aborted.resolve())
    await aborted.promise
    throw signal.reason
  }
  using sensor = new BackgroundSensor({ everyMs: 60_000, limitMs: 20, read })
  await sensor.refresh()
  isLate = true
  await sensor.refresh()
  await aborted.promise
  assert.equal(sensor.value, 7)
})

test('a reading that is too old counts as none', async () => {
  let hangs = false
  const read = (): Promise<number> => (hangs ? new Promise(() => undefined) : Promise.resolve(7))
  using sensor = new BackgroundSensor({ everyMs: 20, limitMs: 20, read })
  await sensor.refresh()
  assert.equal(sensor.value, 7)
  hangs = true
  await eventually(() => sensor.value === undefined, soon)
})

test('after dispose it reads no more', async () => {
  let count = 0
  const sensor = new BackgroundSensor({ everyMs: 1, limitMs: 100, read: async () => ++count })
  await sensor.refresh()
  sensor[Symbol.dispose]()
  const before = count
  await sensor.refresh()
  assert.equal(count, before)
})
