// Captures requested by name alone, over devices some of which list in parts.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { httpGet } from '../../../../support/http-get.ts'
import { gatewayWorld } from '../../../../support/processes/gateway-world.ts'

/** What a device said about a name is cached for a moment, so each request here has its own name. */
const nameOf = (base: string) => `${base}_20260101_1000`

describe('the holder of a capture', () => {
  const world = gatewayWorld(1, {
    control: { timeoutMs: 120_000, probeTimeoutMs: 5_000, connectTimeoutMs: 20_000 },
  })
  const device = (index: number) => world.fleet[index] as FakeDevice
  const ask = (name: string) =>
    httpGet(`${world.gateway.url}/stream/ssize?StreamName=${name}`, { headers: world.gateway.as.user })
  /** d0 sends whole lists, d1 and d2 send parts. */
  const begin = () => {
    for (const [index, one] of world.fleet.entries()) {
      one.behaviour = { givesParts: index > 0 }
      one.captures = [{ StreamName: `other${index}_20260101_1000`, StartTS: '1' }]
      one.answers.set('/stream/ssize', { List: [] })
    }
  }
  const hold = (index: number, name: string) => {
    device(index).captures = [...device(index).captures, { StreamName: name, StartTS: '2' }]
  }

  test('is found, by full name or base name, even if it has just begun', async () => {
    for (const [index, base] of ['lan', 'wan', 'man'].entries()) {
      begin()
      assert.equal((await ask(nameOf(base))).status, 404)
      hold(index, nameOf(base))
      assert.equal((await ask(nameOf(base))).json().Device, `d${index}`)
      assert.equal((await ask(base)).json().Device, `d${index}`)
    }
  })

  test('is not asked for the whole of what it holds when it gives parts', async () => {
    begin()
    hold(1, nameOf('part'))
    await ask(nameOf('part'))
    for (const index of [1, 2]) {
      const lists = device(index).requests.filter(({ url }) => url.startsWith('/stream/list'))
      assert.deepEqual(
        lists.map(({ url }) => url),
        [`/stream/list?Limit=1&StreamName=${nameOf('part')}`],
      )
    }
  })

  test('is unknown when a device does not answer, which is named with no other; what is found needs no answer of it', async () => {
    for (const silent of [0, 1]) {
      begin()
      device(silent).behaviour = { silentBelow: '/stream/list' }
      const late = await ask(`late${silent}_20260101_1000`)
      assert.deepEqual(
        [late.status, late.json().code, late.json().devices],
        [504, 'device-timeout', [`d${silent}`]],
      )
      assert.equal(
        late.json().detail,
        `no device that answered has a capture late${silent}_20260101_1000; it is unknown whether d${silent} has it: ` +
          `device d${silent} did not answer within 5 s`,
      )
      hold(2, `here${silent}_20260101_1000`)
      assert.equal((await ask(`here${silent}_20260101_1000`)).json().Device, 'd2')
    }
  })

  test('on no device leads to similar names, or to what was removed', async () => {
    begin()
    hold(0, 'lax_20260101_1000')
    device(1).behaviour = {
      givesParts: true,
      estimateProblem: { status: 404, body: { code: 'unknown-capture', candidates: ['lap_20260101_1000'] } },
    }
    const unknown = (await ask('laq_20260101_1000')).json()
    assert.deepEqual(
      [unknown.code, unknown.candidates],
      ['unknown-capture', ['lap_20260101_1000', 'lax_20260101_1000']],
    )
    device(1).behaviour = { givesParts: true, estimateProblem: { status: 410, body: { code: 'aged-out' } } }
    assert.equal((await ask('gone_20260101_1000')).json().code, 'aged-out')
  })
})
