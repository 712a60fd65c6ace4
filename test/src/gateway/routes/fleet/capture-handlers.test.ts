// /stream/list, /stream/ssize and /stream/stime over devices some of which send no lists, or unusual ones.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { eventually } from '../../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../../support/http-get.ts'
import { gatewayWorld } from '../../../../support/processes/gateway-world.ts'
import { startTempGateway } from '../../../../support/processes/temp-gateway.ts'

const DEEP = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`

interface ListAnswer {
  readonly List: readonly Record<string, unknown>[]
  readonly Unreachable: readonly { readonly Device: string; readonly code: string; readonly detail: string }[]
}

describe('the lists of the fleet', () => {
  const world = gatewayWorld(1)
  const [first, second] = [() => world.fleet[0] as FakeDevice, () => world.fleet[1] as FakeDevice]
  const ask = (path: string, method = 'GET') =>
    httpGet(world.gateway.url + path, { method, headers: world.gateway.as.viewer })
  const capture = (name: string, startNs: bigint) => ({
    StreamName: name,
    StartTS: String(startNs),
    PCAP: '/p',
  })
  const listOf = async () => (await ask('/stream/list')).json() as unknown as ListAnswer

  for (const [what, body] of [
    ['an entry of 20,000 levels', `{"List":[{"StreamName":"a"},{"StreamName":"b","x":${DEEP}}]}`],
    ['20,000 levels beside the list', `{"List":[],"x":${DEEP}}`],
    ['a text for a list', '{"List":""}'],
    ['null', 'null'],
    ['null for an entry', '{"List":[{"StreamName":"a"},null]}'],
    ['a number for an entry', '{"List":[7]}'],
    ['an entry without a name', '{"List":[{"Size":7}]}'],
    ['an object for a name', `{"List":[{"StreamName":{}}]}`],
    ['an endless name', `{"List":[{"StreamName":"${'x'.repeat(10_000)}"}]}`],
  ] as const) {
    test(`a device that sends ${what} is named, and the entries of the others are returned`, async () => {
      first().behaviour = { body: Buffer.from(body) }
      second().captures = [capture('lab', 5n)]
      const answer = await ask('/stream/list')
      assert.deepEqual([answer.status, answer.headers['capfleet-unreachable']], [200, 'd0'])
      const { List, Unreachable } = answer.json() as unknown as ListAnswer
      assert.deepEqual(
        List.map(({ StreamName, Device }) => [StreamName, Device]),
        [['lab', 'd1']],
      )
      assert.deepEqual(
        [Unreachable.length, Unreachable[0]?.Device, Unreachable[0]?.code],
        [1, 'd0', 'device-protocol'],
      )
      assert.match(Unreachable[0]?.detail ?? '', /^device d0 sent /)
    })
  }

  test('take null for a list without captures', async () => {
    first().behaviour = { body: Buffer.from('{"List":null}') }
    second().captures = [capture('lab', 5n)]
    const { List, Unreachable } = await listOf()
    assert.deepEqual([List.map(({ StreamName }) => StreamName), Unreachable], [['lab'], []])
  })

  test('have the entries of all devices, newest first, as their devices sent them', async () => {
    first().captures = [{ ...capture('b', 20n), Extra: { deep: [1, null] }, Size: 1.5 }, capture('d', 3n)]
    second().captures = [capture('a', 100n), capture('c', 10n), { Path: 'e' }]
    const { List, Unreachable } = await listOf()
    assert.deepEqual(Unreachable, [])
    assert.deepEqual(
      List.map(({ StreamName, Device }) => `${StreamName} ${Device}`),
      ['a d1', 'b d0', 'c d1', 'd d0', 'e d1'],
    )
    assert.deepEqual(List[1], {
      StreamName: 'b',
      StartTS: '20',
      PCAP: '/devices/d0/p',
      Extra: { deep: [1, null] },
      Size: 1.5,
      Device: 'd0',
    })
  })

  test('come in pages, each once, also when several begin together', async () => {
    first().captures = [capture('a', 9n), capture('b', 5n), capture('c', 5n), capture('d', 1n)]
    second().captures = [capture('e', 7n), capture('b', 5n), capture('f', 5n)]
    const page = async (after: string) =>
      (
        await ask(`/stream/list?Limit=1&After=${encodeURIComponent(after)}`)
      ).json() as unknown as ListAnswer & {
        readonly Next?: string
      }
    const seen: string[] = []
    for (let next: string | undefined = ''; next !== undefined; ) {
      const { List, Next }: ListAnswer & { readonly Next?: string } = await page(next)
      seen.push(...List.map(({ StreamName, Device }) => `${StreamName} ${Device}`))
      next = Next
    }
    assert.deepEqual(seen, ['a d0', 'e d1', 'b d0', 'c d0', 'b d1', 'f d1', 'd d0'])
    first().captures = [capture('c', 5n), capture('d', 1n)]
    const gone = await page('5/d0/b')
    assert.deepEqual(
      [gone.List[0]?.StreamName, gone.Next],
      ['c', '5/d0/c'],
      'the capture of that place has gone',
    )
    const odd = await ask('/stream/list?After=b')
    assert.deepEqual([odd.status, odd.json().param], [400, 'After'])
  })

  test('are selected by time, and returned as a table; unknown parameters are reported', async () => {
    first().captures = [
      { ...capture('late', 90n), EndTS: '99', Desc: 'a "quoted", text' },
      { ...capture('early', 10n), EndTS: '20' },
    ]
    second().captures = [{ ...capture('middle', 40n), EndTS: '50', PacketCnt: '7' }]
    const names = async (query: string) =>
      ((await ask(`/stream/list?${query}`)).json() as unknown as ListAnswer).List.map(
        ({ StreamName }) => StreamName,
      )
    assert.deepEqual(await names('From=20'), ['late', 'middle'])
    assert.deepEqual(await names('From=19&To=90'), ['middle', 'early'])
    const table = await ask('/stream/list?Format=csv&Odd=1')
    assert.deepEqual(
      [table.headers['content-type'], table.headers['capfleet-ignored']],
      ['text/csv; charset=utf-8', 'Odd'],
    )
    assert.deepEqual(table.body.toString().split('\n'), [
      'Device,StreamName,StartTS,EndTS,PacketCnt,ByteCnt,State,Type,Desc',
      'd0,late,90,99,,,,,"a ""quoted"", text"',
      'd1,middle,40,50,7,,,,',
      'd0,early,10,20,,,,,',
      '',
    ])
    assert.equal((await ask('/stream/list?Strict=1&Odd=1')).status, 400)
  })

  test('keep numbers of devices to the last digit', async () => {
    first().behaviour = { body: Buffer.from('{"List":[{"StreamName":"a","Date":1793610060123456789}]}') }
    assert.match((await ask('/stream/list?Device=d0')).body.toString(), /"Date":1793610060123456789[,}]/)
  })

  test('are answered to HEAD without a body', async () => {
    first().captures = [capture('a', 1n)]
    const answer = await ask('/stream/list', 'HEAD')
    assert.deepEqual([answer.status, answer.body.length], [200, 0])
    assert.match(answer.headers['content-type'] ?? '', /^application\/json/)
  })

  for (const givesParts of [true, false])
    test(`of many captures of one device arrive whole (parts: ${givesParts})`, async () => {
      const entries = 50_000
      first().behaviour = { givesParts }
      first().captures = Array.from({ length: entries }, (_, index) =>
        capture(`c${index}`, BigInt(entries - index)),
      )
      const { response } = await httpOpen(`${world.gateway.url}/stream/list`, {
        headers: world.gateway.as.viewer,
      })
      let text = ''
      for await (const chunk of response) text += chunk
      const { List } = JSON.parse(text) as ListAnswer
      assert.equal(List.length, entries)
      assert.ok(List.every(({ StreamName }, index) => StreamName === `c${index}`))
      const newest = await ask('/stream/list?Limit=2&Device=d0')
      assert.deepEqual(
        (newest.json() as unknown as ListAnswer).List.map(({ StreamName }) => StreamName),
        ['c0', 'c1'],
      )
      first().answers.set('/stream/ssize', { List: [] })
      assert.equal((await ask('/stream/ssize?StreamName=c49999')).json().Device, 'd0')
    })

  test('of splits lead to the device, and keep what it said beside them', async () => {
    first().captures = [capture('lab_20260101_1000', 1n)]
    const splits = Array.from({ length: 5_000 }, (_, id) => ({ id: String(id), PCAP: '/pcap/x', Size: id }))
    first().answers.set('/stream/ssize', {
      Path: '/p',
      SplitFile: true,
      List: splits,
      Next: '7',
      Device: 'liar',
    })
    const answer = await ask('/stream/ssize?StreamName=lab_20260101_1000')
    const { List, ...rest } = answer.json() as unknown as ListAnswer
    assert.deepEqual(rest, { Device: 'd0', Path: '/p', SplitFile: true, Next: '7' })
    assert.deepEqual(
      List,
      splits.map((split) => ({ ...split, PCAP: '/devices/d0/pcap/x' })),
    )
  })

  test('do not wait for a client that does not read, and free its connection to the device', async () => {
    first().captures = [capture('lab_20260101_1000', 1n)]
    const Desc = 'x'.repeat(2_000)
    first().answers.set('/stream/ssize', { List: Array.from({ length: 20_000 }, () => ({ Desc })) })
    const path = '/stream/ssize'
    await using impatient = await startTempGateway(world.fleet, world.redis.url, {
      downloads: { clientIdleTimeoutMs: 1_000 },
    })
    using open = await httpOpen(`${impatient.url}${path}?StreamName=lab_20260101_1000`, {
      headers: impatient.as.viewer,
    })
    open.response.pause()
    const ends = () =>
      impatient.logged.filter(
        ({ event, fields }) => event === 'http.request' && fields.path === path && fields.complete === false,
      )
    await eventually(() => ends().length === 1, { message: 'the client was cut off' })
  })

  for (const [what, answer] of [
    ['null', null],
    ['a text for a list', { List: '' }],
    ['null for a split', { List: [null] }],
    ['a text for a split', { List: ['x'] }],
  ] as const) {
    test(`a device that sends ${what} instead of splits is named in a 502`, async () => {
      first().captures = [capture('lab_20260101_1000', 1n)]
      first().answers.set('/stream/stime', answer)
      const { status, json } = await ask('/stream/stime?StreamName=lab_20260101_1000')
      assert.deepEqual([status, json().code, json().devices], [502, 'device-protocol', ['d0']])
    })
  }

  test('are not searched for a name that no capture has', async () => {
    for (const name of ['x'.repeat(1_025), 'a%0Ab', '%C3%B6'.repeat(513)]) {
      const { status, json } = await ask(`/stream/ssize?StreamName=${name}`)
      assert.deepEqual([status, json().code, json().param], [400, 'bad-parameter', 'StreamName'])
    }
    assert.deepEqual(first().requests, [])
  })
})
