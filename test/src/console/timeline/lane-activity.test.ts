import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import type { ActivityCache } from '../../../../src/console/timeline/lane-activity.ts'

const RANGE = { fromNs: '0', toNs: '100', bucketNs: '10' }
const FAILURE = { code: 'device-unreachable', detail: 'it does not answer' }
const LANE = { packets: [1], bytes: [60], exact: true, gaps: [], dropped: [], trimmed: [], damaged: [] }
const CAPTURE = { Device: 'a', StreamName: 'x', StartTS: '1', EndTS: '2', IsActive: false }
const ANSWERS: Record<string, object> = {
  '/v1/activity': {
    ...RANGE,
    devices: [
      { device: 'a', ...LANE },
      { device: 'b', error: FAILURE },
    ],
  },
  '/stream/list': { List: [CAPTURE], Unreachable: [{ Device: 'b', ...FAILURE }] },
}

const asked: URL[] = []
const server = createServer((request, response) => {
  const url = new URL(request.url ?? '', 'http://gateway')
  asked.push(url)
  response.setHeader('content-type', 'application/json').end(JSON.stringify(ANSWERS[url.pathname]))
})
await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
// The page derives the gateway's address from its own.
Object.assign(globalThis, {
  location: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
})
const { askActivity } = await import('../../../../src/console/timeline/lane-activity.ts')
const { askCaptures } = await import('../../../../src/console/timeline/captures.ts')

const view = { fromNs: 40n, toNs: 60n }
const ask = { view, devices: ['a', 'b'], widthPx: 20, isFiltered: false }
const { signal } = new AbortController()

describe('what the lanes ask for', () => {
  after(() => {
    server.closeAllConnections()
    server.close()
  })

  test('devices that do not answer are named, next to what the others report', async () => {
    const cache: ActivityCache = new Map()
    assert.deepEqual([...(await askActivity(ask, cache, signal))], [['b', FAILURE]])
    assert.deepEqual([...cache.keys()], ['a'])
    const { captures, failures } = await askCaptures(['a', 'b'], view, signal)
    assert.deepEqual(
      captures.map(({ device, fromNs }) => [device, fromNs]),
      [['a', 1n]],
    )
    assert.deepEqual([...failures], [['b', FAILURE]])
  })

  test('captures that are left out are not kept quiet about', async () => {
    assert.equal((await askCaptures(['a'], view, signal)).isCut, false)
    ANSWERS['/stream/list'] = { List: [CAPTURE], Unreachable: [], Next: '1/a/x' }
    assert.equal((await askCaptures(['a'], view, signal)).isCut, true)
  })

  test('times say that they are nanoseconds: short ones are near 1970', async () => {
    await askActivity(ask, new Map(), signal)
    const given = asked.at(-1)?.searchParams
    assert.deepEqual(
      ['TSBegin', 'TSEnd', 'TSUnit'].map((name) => given?.get(name)),
      ['30', '70', 'nanos'],
    )
  })

  test('does not request what a caller with a filter may not see, and says why', async () => {
    const before = asked.length
    await assert.rejects(askActivity({ ...ask, isFiltered: true }, new Map(), signal), /pass your filter/)
    assert.equal(asked.length, before)
  })
})
