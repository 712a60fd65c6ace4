// The lists of many devices as one, compared with a sort of all their entries.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Fleet } from '../../../../../src/gateway/fleet/fleet.ts'
import {
  type DeviceCapture,
  FleetList,
  type ListChoice,
} from '../../../../../src/gateway/fleet/questions/fleet-list.ts'
import { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { tempFleet } from '../../../../support/devices/temp-fleet.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'

const STAYING = new AbortController().signal
const DEVICES = 6

interface Held {
  readonly device: string
  readonly name: string
  readonly startNs: bigint
  readonly endNs: bigint
}

describe('the list of a fleet', () => {
  let devices: FakeDevice[]
  let fleet: Fleet

  beforeEach(async () => {
    // Not in the order of their names.
    const names = Array.from({ length: DEVICES }, (_, index) => `d${(index * 5) % DEVICES}`)
    devices = await Promise.all(names.map((name) => FakeDevice.start(name, Buffer.alloc(24))))
    for (const [index, device] of devices.entries()) device.behaviour = { givesParts: index % 3 !== 0 }
    fleet = tempFleet(devices)
  })
  afterEach(async () => {
    await fleet[Symbol.asyncDispose]()
    for (const device of devices) await device[Symbol.asyncDispose]()
  })

  const listOf = (choice: ListChoice) => new FleetList(fleet.members, choice, STAYING)
  const held = (): Held[] =>
    devices.flatMap(({ name: device, captures }) =>
      captures.map(({ StreamName, StartTS, EndTS }) => ({
        device,
        name: String(StreamName),
        startNs: BigInt(String(StartTS)),
        endNs: BigInt(String(EndTS)),
      })),
    )

  async function take(choice: ListChoice): Promise<DeviceCapture[]> {
    const taken: DeviceCapture[] = []
    for await (const found of listOf(choice).captures()) {
      taken.push(found)
      if (taken.length === choice.most) break
    }
    return taken
  }

  test('is complete and in order, whatever is chosen, in one go or in pages', async (context) => {
    const { integer, next: random, seed } = seededRandom()
    context.diagnostic(`SEED=${seed}`)
    for (let round = 0; round < 8; round += 1) {
      // Many captures begin together, on one device even more than are requested at a time.
      const times = round % 4 === 0 ? 3 : 200
      for (const device of devices)
        device.captures = Array.from({ length: integer(0, 150) }, (_, at) => {
          const startNs = integer(1, times)
          return { StreamName: `c${at}`, StartTS: String(startNs), EndTS: String(startNs + integer(1, 9)) }
        }).toSorted(() => random() - 0.5)
      const fromNs = round % 3 === 0 ? BigInt(integer(0, times)) : undefined
      const toNs = round % 5 === 0 ? BigInt(integer(0, times + 1)) : undefined
      const expected = held()
        .filter(({ endNs }) => fromNs === undefined || endNs > fromNs)
        .filter(({ startNs }) => toNs === undefined || startNs < toNs)
        .toSorted(inOrder)
      const all = await take({ fromNs, toNs, most: Infinity })
      assert.deepEqual(all.map(keyOf), expected.map(keyOfHeld), `SEED=${seed} round ${round}`)
      const paged: DeviceCapture[] = []
      for (let page = all; page.length > 0; ) {
        const last = paged.at(-1)
        const after = last && { device: last.device, ...last.capture }
        page = await take({ fromNs, toNs, after, most: integer(20, 90) })
        paged.push(...page)
      }
      assert.deepEqual(paged.map(keyOf), expected.map(keyOfHeld), `SEED=${seed} round ${round}, in pages`)
    }
  })

  test('has each capture that stays once, while others come and go between its pages', async (context) => {
    const { integer, pick, seed } = seededRandom()
    context.diagnostic(`SEED=${seed}`)
    for (let round = 0; round < 3; round += 1) {
      let count = 0
      const started = (startNs: number) => {
        count += 1
        return { StreamName: `c${count}`, StartTS: String(startNs), EndTS: String(startNs + 1) }
      }
      for (const device of devices)
        device.captures = Array.from({ length: 60 }, () => started(integer(1, 30)))
      const staying = new Set(held().map(keyOfHeld))
      const seen: string[] = []
      let last: DeviceCapture | undefined
      for (;;) {
        const after = last && { device: last.device, ...last.capture }
        const page = await take({ after, most: integer(1, 40) })
        if (page.length === 0) break
        seen.push(...page.map(keyOf))
        last = page.at(-1)
        // The capture that ended the page is removed too, and a new one begins at its time.
        const device = pick(devices)
        const gone = new Set([String(pick(device.captures).StreamName), last?.capture.name])
        for (const name of gone) staying.delete(`${device.name}/${name}`)
        device.captures = [
          ...device.captures.filter(({ StreamName }) => !gone.has(String(StreamName))),
          started(Number(last?.capture.startNs)),
        ]
      }
      assert.equal(new Set(seen).size, seen.length, `SEED=${seed} round ${round}: a capture came twice`)
      const missing = [...staying].filter((key) => !seen.includes(key))
      assert.deepEqual(missing, [], `SEED=${seed} round ${round}`)
    }
  })

  test('takes of each device little more than is needed', async () => {
    for (const device of devices) {
      device.behaviour = { givesParts: true }
      device.captures = Array.from({ length: 5_000 }, (_, at) => ({
        StreamName: `c${at}`,
        StartTS: String(at),
        EndTS: String(at + 1),
      }))
    }
    assert.equal((await take({ most: 60 })).length, 60)
    assert.deepEqual(
      devices.map(({ requests }) => requests.map(({ url }) => url)),
      devices.map(() => ['/stream/list?Limit=20']),
    )
  })

  test('says which devices failed, also in the middle of their lists', async () => {
    const [first, second] = devices as [FakeDevice, FakeDevice]
    for (const device of devices) {
      device.behaviour = { givesParts: true }
      device.captures = Array.from({ length: 40 }, (_, at) => ({ StreamName: `c${at}`, StartTS: String(at) }))
    }
    first.behaviour = { body: Buffer.from('<html>') }
    const list = listOf({ most: 30 })
    const taken: DeviceCapture[] = []
    for await (const found of list.captures()) {
      if (taken.length === 0) second.behaviour = { dieAfterBytes: 5 }
      taken.push(found)
    }
    const failed = list.unreachable.map(({ device, error }) => `${device} ${error.code}`)
    assert.deepEqual(failed, [`${first.name} device-protocol`, `${second.name} device-unreachable`])
    const countOf = (name: string) => taken.filter(({ device }) => device === name).length
    assert.deepEqual(
      devices.map(({ name }) => countOf(name)),
      [0, 16, 40, 40, 40, 40],
    )
  })
})

function inOrder(a: Held, b: Held): number {
  if (a.startNs !== b.startNs) return a.startNs > b.startNs ? -1 : 1
  if (a.device !== b.device) return a.device < b.device ? -1 : 1
  return a.name < b.name ? -1 : 1
}

function keyOf({ device, capture }: DeviceCapture): string {
  return `${device}/${capture.name}`
}

function keyOfHeld({ device, name }: Held): string {
  return `${device}/${name}`
}
