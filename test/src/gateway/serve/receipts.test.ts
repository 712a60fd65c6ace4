// What /v1/requests/{id} and the trailers say about downloads, over simulated devices and a real Redis.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import type { FakeDevice } from '../../../support/devices/fake-device.ts'
import { FLEET_BEGIN_NS, FLEET_RANGE, fleetPcap } from '../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../support/http-get.ts'
import { readPcap } from '../../../support/packets/pcap-records.ts'
import { gatewayWorld } from '../../../support/processes/gateway-world.ts'

const PACKETS = 500
const TIMERANGE = `/api/v1/pcap/timerange?${FLEET_RANGE}`
const UNKNOWN_ID = '0a1b2c3d-0000-4000-8000-0123456789ab'

describe('receipts', () => {
  const world = gatewayWorld(PACKETS)
  const { fleet } = world

  const get = (path: string, as: 'viewer' | 'user' | 'full' = 'user', headers = {}) =>
    httpGet(world.gateway.url + path, { headers: { ...world.gateway.as[as], ...headers } })
  const idOf = (headers: Readonly<Record<string, unknown>>) => String(headers['capfleet-request-id'])
  const receiptOf = async (id: string) => (await get(`/v1/requests/${id}`)).json()
  const first = (): FakeDevice => fleet[0] as FakeDevice

  test('a merge: what was asked, what came, and the part of each device', async () => {
    const answer = await get(`${TIMERANGE}&FilterBPF=tcp&Token=secret&OnError=partial`)
    const receipt = await receiptOf(idOf(answer.headers))
    assert.equal(receipt.status, 'complete')
    assert.equal(receipt.user, 'user')
    assert.equal(receipt.path, '/api/v1/pcap/timerange')
    assert.equal(receipt.query, `${FLEET_RANGE}&TSUnit=nanos&FilterBPF=tcp&OnError=partial`)
    assert.equal(receipt.packets, String(3 * PACKETS))
    assert.equal(receipt.bytes, String(answer.body.length))
    assert.equal(receipt.error, null)
    assert.ok(Date.parse(String(receipt.endedAt)) >= Date.parse(String(receipt.startedAt)))
    const devices = receipt.devices as Record<string, unknown>[]
    assert.deepEqual(
      devices.map(({ device, status, packets, firstNs }) => [device, status, packets, firstNs]),
      [0, 1, 2].map((index) => [
        `d${index}`,
        'complete',
        String(PACKETS),
        String(FLEET_BEGIN_NS + BigInt(index) * 1_000_000n),
      ]),
    )
    assert.equal('resume' in receipt, false, 'what Resume needs is not shown')
    assert.doesNotMatch(JSON.stringify(receipt), /secret/)
  })

  test('a merge with Dedup: the packets and bytes of the devices are those of the body, and no more', async () => {
    // d1 has half of the packets of d0; d2 has other packets.
    const d1 = fleet[1] as FakeDevice
    d1.behaviour = { body: fleetPcap(0, PACKETS / 2) }
    const answer = await get(`${TIMERANGE}&Dedup=1000`)
    const receipt = await receiptOf(idOf(answer.headers))
    const devices = receipt.devices as Record<string, string>[]
    const sum = (member: string) => devices.reduce((total, device) => total + Number(device[member]), 0)
    assert.equal(receipt.duplicates, String(PACKETS / 2))
    assert.deepEqual(
      devices.map(({ device, packets }) => [device, Number(packets)]),
      [
        ['d0', PACKETS],
        ['d1', 0],
        ['d2', PACKETS],
      ],
    )
    assert.equal(sum('bytes'), answer.body.length - 24)
    assert.equal(sum('packets'), readPcap(answer.body).records.length)
  })

  test('a relay: the same members, as far as the device reports them', async () => {
    const answer = await get(`/devices/d1${TIMERANGE}`)
    const receipt = await receiptOf(idOf(answer.headers))
    assert.deepEqual(
      [receipt.status, receipt.packets, receipt.bytes, receipt.path],
      ['complete', '7', String(answer.body.length), '/devices/d1/api/v1/pcap/timerange'],
    )
    const [device] = receipt.devices as Record<string, unknown>[]
    assert.deepEqual(
      [device?.device, device?.status, device?.packets, device?.bytes],
      ['d1', 'complete', '7', receipt.bytes],
    )
  })

  for (const [what, path] of [
    ['relay', `/devices/d0${TIMERANGE}`],
    ['merge', TIMERANGE],
    ['compressed merge', `${TIMERANGE}&Compression=fast`],
  ] as const) {
    test(`Digest=sha256 of a ${what} is that of the bytes the client got, in receipt and trailer`, async () => {
      const { headers, body, trailers } = await get(`${path}&Digest=sha256`, 'user', { te: 'trailers' })
      const sha256 = createHash('sha256').update(body).digest('hex')
      assert.equal((await receiptOf(idOf(headers))).sha256, sha256)
      assert.equal(trailers['capfleet-sha256'], sha256)
      assert.equal(trailers['capfleet-status'], 'complete')
      assert.equal(trailers['capfleet-complete'], '1')
      assert.equal(trailers['capfleet-bytes'], String(body.length))
    })
  }

  test('without Digest nothing is hashed', async () => {
    const { headers, trailers } = await get(TIMERANGE, 'user', { te: 'trailers' })
    assert.equal((await receiptOf(idOf(headers))).sha256, null)
    assert.equal(trailers['capfleet-sha256'], undefined)
  })

  test('a limit: truncated, with the first packet left out', async () => {
    const { headers, trailers } = await get(`${TIMERANGE}&MaxPackets=4`, 'user', { te: 'trailers' })
    const receipt = await receiptOf(idOf(headers))
    assert.deepEqual(
      [receipt.status, receipt.packets, receipt.nextNs],
      ['truncated', '4', String(FLEET_BEGIN_NS + 4_000_000n)],
    )
    assert.equal(trailers['capfleet-status'], 'truncated')
  })

  test('OnError=partial without a device: partial, and what is missing of whom', async () => {
    first().behaviour = { problem: { status: 500, body: {} } }
    const { headers, trailers } = await get(`${TIMERANGE}&OnError=partial`, 'user', { te: 'trailers' })
    assert.equal(headers['capfleet-devices'], 'd1, d2', 'who is read')
    assert.equal(headers['capfleet-missing'], trailers['capfleet-missing'], 'known before the first byte')
    const receipt = await receiptOf(idOf(headers))
    assert.equal(receipt.status, 'partial')
    assert.equal(receipt.packets, String(2 * PACKETS))
    const [missing] = receipt.devices as Record<string, Record<string, unknown>>[]
    assert.equal(missing?.device, 'd0' as never)
    assert.equal(missing?.missing?.fromNs, String(FLEET_BEGIN_NS))
    assert.equal(missing?.error?.code, 'device-protocol')
    assert.equal(trailers['capfleet-status'], 'partial')
    assert.equal(trailers['capfleet-complete'], '0')
    assert.match(trailers['capfleet-missing'] ?? '', new RegExp(`^d0;from=${FLEET_BEGIN_NS};to=\\d+$`))
  })

  for (const [who, more] of [
    ['one device', '&Device=d0'],
    ['a merge', ''],
  ] as const) {
    test(`damaged blocks of ${who}: partial, and how many of whom`, async () => {
      first().behaviour = { corruptBlocks: 3 }
      const { headers, trailers } = await get(TIMERANGE + more, 'user', { te: 'trailers' })
      assert.deepEqual(
        ['complete', 'status', 'corrupt-blocks'].map((name) => trailers[`capfleet-${name}`]),
        ['0', 'partial', '3'],
      )
      const receipt = await receiptOf(idOf(headers))
      assert.equal(receipt.status, 'partial')
      const [device] = receipt.devices as Record<string, unknown>[]
      assert.deepEqual([device?.device, device?.status, device?.corruptBlocks], ['d0', 'damaged', '3'])
    })
  }

  test('a download that was refused before its first byte: failed, with the code', async () => {
    first().behaviour = { problem: { status: 500, body: {} } }
    const answer = await get(TIMERANGE)
    assert.equal(answer.status, 502)
    const receipt = await receiptOf(idOf(answer.headers))
    assert.deepEqual([receipt.status, receipt.bytes], ['failed', '0'])
    assert.equal((receipt.error as Record<string, unknown>).code, 'device-protocol')
  })

  test('a cut: the receipt is there before the client sees the cut', async () => {
    first().behaviour = { dieAfterBytes: fleetPcap(0, 300).length + 5 }
    const path = `/devices/d0${TIMERANGE}`
    using answer = await httpOpen(world.gateway.url + path, { headers: world.gateway.as.user })
    let bytes = 0
    try {
      for await (const chunk of answer.response) bytes += chunk.length
      assert.fail('the download ended as if it were whole')
    } catch {
      const receipt = await receiptOf(idOf(answer.response.headers))
      assert.deepEqual([receipt.status, receipt.bytes], ['failed', String(bytes)])
      assert.equal((receipt.error as Record<string, unknown>).code, 'device-unreachable')
    }
  })

  test('a merge that failed: the failed device, and none that was delivered completely', async () => {
    first().behaviour = { dieAfterBytes: fleetPcap(0, 300).length + 5, cannotSkip: true }
    using answer = await httpOpen(world.gateway.url + TIMERANGE, { headers: world.gateway.as.user })
    await assert.rejects(buffer(answer.response))
    const receipt = await receiptOf(idOf(answer.response.headers))
    assert.equal(receipt.status, 'failed')
    const devices = receipt.devices as Record<string, unknown>[]
    assert.deepEqual(
      devices.map(({ device, status }) => [device, status]),
      [
        ['d0', 'failed'],
        ['d1', 'incomplete'],
        ['d2', 'incomplete'],
      ],
    )
  })

  test('Dedup with one device: the device is asked for it, and its count is in the receipt', async () => {
    const d1 = fleet[1] as FakeDevice
    d1.behaviour = { duplicates: 3 }
    const { headers } = await get(`/devices/d1${TIMERANGE}&Dedup=5&DedupBy=ip`)
    assert.equal(headers['capfleet-ignored'], undefined)
    const receipt = await receiptOf(idOf(headers))
    assert.match(String(receipt.query), /&Dedup=5&DedupBy=ip$/)
    assert.equal(receipt.duplicates, '3')
  })

  test('a client that leaves: streaming while it reads, then client-gone', async () => {
    first().behaviour = { hangAfterBytes: 5_000 }
    const path = `/devices/d0${TIMERANGE}`
    const answer = await httpOpen(world.gateway.url + path, { headers: world.gateway.as.user })
    const id = idOf(answer.response.headers)
    const statusesOf = ({ status, devices }: Record<string, unknown>) => [
      status,
      ...(devices as Record<string, unknown>[]).map((device) => device.status),
    ]
    assert.deepEqual(statusesOf(await receiptOf(id)), ['streaming', 'streaming'])
    answer[Symbol.dispose]()
    await eventually(async () => (await receiptOf(id)).status === 'client-gone', {
      message: 'the receipt tells that the client has gone',
    })
    assert.deepEqual(statusesOf(await receiptOf(id)), ['client-gone', 'incomplete'])
  })

  test('is read by its user and by full, and does not exist for others', async () => {
    const mine = idOf((await get(`/devices/d0${TIMERANGE}`)).headers)
    const theirs = idOf((await get(`/devices/d0${TIMERANGE}`, 'full')).headers)
    assert.equal((await get(`/v1/requests/${mine}`, 'full')).status, 200)
    assert.equal((await get(`/v1/requests/${theirs}`, 'full')).status, 200)
    for (const [id, as] of [
      [theirs, 'user'],
      [UNKNOWN_ID, 'full'],
      ['x', 'full'],
    ] as const) {
      const answer = await get(`/v1/requests/${id}`, as)
      assert.deepEqual([answer.status, answer.json().code], [404, 'unknown-request'])
    }
  })

  test('counts downloads by outcome and kind', async () => {
    await get(`/devices/d0${TIMERANGE}`)
    const metrics = async () => (await get('/metrics')).body.toString()
    const counted = await metrics()
    assert.match(counted, /capfleet_downloads_total\{outcome="complete",kind="relay"\} [1-9]/)
    assert.match(counted, /capfleet_downloads_total\{outcome="partial",kind="merge"\} 2/)
    await eventually(async () => /^capfleet_receipts_pending 0$/m.test(await metrics()), {
      message: 'Redis has taken all receipts',
    })
  })
})
