// /stream/list, and captures requested by name alone, over many devices with 1,000 captures each; counted in requests
// and entries. At night: over 500 devices.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  SIMULATED_USER,
  SimulatedDevice,
  simulatedListItem,
} from '../../../../support/devices/simulated-device.ts'
import { httpGet } from '../../../../support/http-get.ts'
import { startTempGateway, type TempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'
import { DEVICE_PASSWORD } from '../../../../support/suite-secrets.ts'

const DEVICES = process.env.CAPFLEET_LONG === '1' ? 500 : 60
const CAPTURES = 1_000
const LIMIT = 100

interface ListAnswer {
  readonly List: readonly { readonly Device: string; readonly StreamName: string }[]
  readonly Unreachable: readonly unknown[]
  readonly Next?: string
}

for (const sendsWholeLists of [false, true])
  describe(`${DEVICES} devices of 1,000 captures each that send ${sendsWholeLists ? 'whole lists' : 'parts'}`, () => {
    const parts = new AsyncDisposableStack()
    const devices: SimulatedDevice[] = []
    let gateway: TempGateway
    before(async () => {
      for (let index = 0; index < DEVICES; index += 1) {
        const options = {
          index,
          packets: 1,
          packetsPerTick: 1,
          tickMs: 1,
          captures: CAPTURES,
          sendsWholeLists,
        }
        devices.push(parts.use(await SimulatedDevice.start(options)))
      }
      const redis = parts.use(await TempRedis.create())
      const configured = devices.map(({ name, url }) => ({
        config: { name, url, user: SIMULATED_USER, password: { env: 'FAKE_DEVICE_PASSWORD' } },
        password: DEVICE_PASSWORD,
      }))
      gateway = parts.use(
        await startTempGateway(configured, redis.url, {
          // Devices, gateway and client share a processor here.
          control: { probeTimeoutMs: 60_000, timeoutMs: 120_000 },
          health: { intervalS: 3_600, failuresMax: 1_000_000 },
        }),
      )
    })
    after(() => parts.disposeAsync())

    const ask = (path: string) => httpGet(gateway.url + path, { headers: gateway.as.user })
    const counts = () => ({
      lists: devices.reduce((sum, { lists }) => sum + lists, 0),
      listed: devices.reduce((sum, { listed }) => sum + listed, 0),
    })
    /** The captures with the same number begin together: those with the highest number come first, by device. */
    const names = Array.from({ length: DEVICES }, (_, index) => `d${index}`).toSorted()
    const expected = (from: number) =>
      Array.from({ length: LIMIT }, (_, at) => {
        const place = from + at
        const device = names[place % DEVICES] ?? ''
        return simulatedListItem(device, CAPTURES - 1 - Math.floor(place / DEVICES)).StreamName
      })

    test('give the newest hundred, and the next hundreds, with few questions', async (context) => {
      let next = ''
      for (const from of sendsWholeLists ? [0] : [0, 100, 200]) {
        const before = counts()
        const startMs = performance.now()
        const answer = await ask(`/stream/list?Limit=${LIMIT}&After=${encodeURIComponent(next)}`)
        context.diagnostic(`${Math.round(performance.now() - startMs)} ms`)
        assert.deepEqual([answer.status, answer.headers['capfleet-unreachable']], [200, undefined])
        const { List, Unreachable, Next } = answer.json() as unknown as ListAnswer
        assert.deepEqual([Unreachable, List.map(({ StreamName }) => StreamName)], [[], expected(from)])
        next = Next ?? ''
        assert.notEqual(next, '')
        const { lists, listed } = counts()
        const asked = lists - before.lists
        // Whether a device lists in parts is asked once.
        if (sendsWholeLists) assert.equal(asked, from === 0 ? 2 * DEVICES : DEVICES)
        else assert.deepEqual([asked, listed - before.listed], [DEVICES, 16 * DEVICES])
      }
    })

    test('are asked for a capture by its name, and say where it is', async () => {
      const before = counts()
      const answer = await ask('/v1/estimate?StreamName=d41_7')
      // Simulated devices have no estimates; which of them is asked for one shows who has the capture.
      assert.deepEqual([answer.status, answer.json().devices], [404, ['d41']])
      const { lists, listed } = counts()
      assert.equal(lists - before.lists, DEVICES)
      if (!sendsWholeLists) assert.equal(listed - before.listed, 1)
    })
  })
