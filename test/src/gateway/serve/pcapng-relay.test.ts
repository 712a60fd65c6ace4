// Format=pcapng of one device through the gateway: passed on as it is.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { FakeDevice } from '../../../support/devices/fake-device.ts'
import { FLEET_RANGE } from '../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../support/http-get.ts'
import { makePacket } from '../../../support/packets/packet-maker.ts'
import { makePcapng } from '../../../support/packets/pcapng-maker.ts'
import { readPcapng } from '../../../support/packets/pcapng-reader.ts'
import { gatewayWorld } from '../../../support/processes/gateway-world.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../../support/processes/small-fleet.ts'

const RANGE = `TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${SMALL_FLEET_START_NS + 10_000_000n}`
const TIMERANGE = `/api/v1/pcap/timerange?${RANGE}&Format=pcapng`

describe('pcapng of appliances', () => {
  let fleet: SmallFleet
  before(async () => {
    fleet = await startSmallFleet()
  })
  after(() => fleet[Symbol.asyncDispose]())

  const get = (path: string, options: { readonly method?: string } = {}) =>
    httpGet(fleet.gateway.url + path, { headers: fleet.gateway.as.full, ...options })

  test('a download from one device is what the device gives, with its receipt', async () => {
    for (const path of [
      `/devices/east${TIMERANGE}`,
      `${TIMERANGE}&Device=east`,
      `${TIMERANGE}&Device=east&Compression=fast`,
      '/api/v1/pcap/single?StreamName=east-first&Format=pcapng',
    ]) {
      const asked = path.replace('/devices/east', '').replace('&Device=east', '')
      const own = await fleet.appliances[0]?.get(asked)
      const answer = await get(path)
      assert.equal(answer.status, 200, answer.body.toString())
      assert.ok(own?.body.equals(answer.body), path)
      for (const name of ['content-type', 'content-disposition'])
        assert.equal(answer.headers[name], own?.headers[name])
      const ask = async () => (await get(`/v1/requests/${answer.headers['capfleet-request-id']}`)).json()
      await eventually(async () => (await ask()).status !== 'streaming', { message: 'the receipt is final' })
      const receipt = await ask()
      const { packets } = readPcapng(
        (await fleet.appliances[0]?.get(asked.replace('&Compression=fast', '')))?.body ?? Buffer.alloc(0),
      )
      assert.deepEqual(
        [receipt.status, receipt.packets, receipt.bytes],
        ['complete', String(packets.length), String(answer.body.length)],
      )
    }
  })

  test('HEAD says the same of the file', async () => {
    const { status, headers } = await get(`/devices/east${TIMERANGE}`, { method: 'HEAD' })
    assert.deepEqual([status, headers['content-type']], [200, 'application/x-pcapng'])
    assert.match(headers['content-disposition'] ?? '', /filename="east_[\w.-]+\.pcapng"/)
  })

  test('any part of the file is resumed, of one device and of several', async () => {
    for (const path of [`/devices/east${TIMERANGE}`, TIMERANGE]) {
      const { headers, body } = await get(path)
      const id = headers['capfleet-request-id']
      for (let size = 0; size <= body.length; size += 331) {
        const rest = await get(`${path}&Resume=${id}&Offset=${size}`)
        assert.ok(Buffer.concat([body.subarray(0, size), rest.body]).equals(body), `${path} at ${size}`)
      }
    }
  })
})

describe('pcapng of devices that fail', () => {
  const world = gatewayWorld(10)
  const path = `/devices/d0/api/v1/pcap/timerange?${FLEET_RANGE}&Format=pcapng`
  const body = makePcapng(
    1,
    Array.from({ length: 50 }, (_, number) => ({
      ...makePacket(BigInt(number), `packet ${number}`, 60),
      port: 0,
    })),
  )
  const device = (): FakeDevice => world.fleet[0] as FakeDevice
  const get = () => httpGet(world.gateway.url + path, { headers: world.gateway.as.user })

  test('a body that breaks off is cut inside a block, wherever it breaks off', async () => {
    for (const dieAfterBytes of [200, 48, body.length - 1, body.length]) {
      device().behaviour = { body, dieAfterBytes }
      using answer = await httpOpen(world.gateway.url + path, { headers: world.gateway.as.user })
      const chunks: Buffer[] = []
      await assert.rejects(async () => {
        for await (const chunk of answer.response) chunks.push(chunk)
      })
      const file = Buffer.concat(chunks)
      assert.ok(
        file.length >= dieAfterBytes &&
          body.subarray(0, dieAfterBytes).equals(file.subarray(0, dieAfterBytes)),
      )
      assert.throws(() => readPcapng(file), /no whole block/)
    }
  })

  test('a body without a proof of its end, or in another format, is refused', async () => {
    for (const [behaviour, detail] of [
      [{ body, withLength: true }, /does not announce the trailer Capfleet-Complete/],
      [{}, /did not answer with pcapng/],
      [{ body, headers: { 'Capfleet-Ignored': 'Format' } }, /does not support Format/],
    ] as const) {
      device().behaviour = behaviour
      const answer = await get()
      assert.deepEqual([answer.status, answer.json().code], [502, 'device-protocol'])
      assert.match(String(answer.json().detail), detail)
    }
  })
})
