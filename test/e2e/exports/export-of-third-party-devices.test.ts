// An export from a third-party device has all its packets, or says where completeness could not be verified.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  API_BEGIN_NS,
  API_CAPTURE,
  API_STEP_NS,
  type ApiBehaviour,
  ApiDevice,
} from '../../support/devices/api-device.ts'
import { ExportWorld } from '../../support/exports/export-world.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap } from '../../support/packets/pcap-records.ts'
import { readPcapng } from '../../support/packets/pcapng-reader.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'

const PACKETS = 200

/** Every second packet comes before the packet that it follows. */
function pairsSwapped(records: readonly PcapRecord[]): readonly PcapRecord[] {
  return records.map((_, index) => records[index ^ 1] as PcapRecord)
}

const RANGE = `TSBegin=${API_BEGIN_NS}&TSEnd=${API_BEGIN_NS + BigInt(PACKETS) * API_STEP_NS}`

interface Times {
  readonly firstNs: string
  readonly lastNs: string
}

describe('an export of a third-party device', () => {
  const parts = new AsyncDisposableStack()
  let foreign: ApiDevice
  let other: ApiDevice
  let legacy: ApiDevice
  let world: ExportWorld

  before(async () => {
    foreign = parts.use(await ApiDevice.start('foreign', PACKETS))
    other = parts.use(await ApiDevice.start('other', PACKETS))
    const pathsOfOld: ApiBehaviour = { order: pairsSwapped, missing: /^\/api\/v1\// }
    legacy = parts.use(await ApiDevice.start('legacy', PACKETS, pathsOfOld))
    process.env.FOREIGN_PASSWORD = foreign.password
    const password = { env: 'FOREIGN_PASSWORD' }
    const devices = [legacy, foreign, other].map(({ config }) => ({ ...config, password }))
    world = parts.use(await ExportWorld.create({ captureBytes: 0, settings: { devices } }))
    parts.use(await startTempWorker(world.gateway))
  })
  after(() => parts.disposeAsync())

  const ended = async (devices = 'foreign') =>
    await world.ended(await world.ordered(`${RANGE}&Device=${devices}`))

  test('is complete where its answers show their end', async () => {
    foreign.behaviour = {}
    const shown = await ended()
    assert.equal(shown.state, 'complete', JSON.stringify(shown))
    assert.deepEqual(await world.files(shown), [makePcap(foreign.records)])
  })

  test('is one interface in pcapng, of several devices too', async () => {
    foreign.behaviour = other.behaviour = {}
    for (const devices of ['foreign', 'foreign,other']) {
      const id = await world.ordered(`${RANGE}&Device=${devices}&Format=pcapng`)
      const shown = await world.ended(id)
      assert.equal(shown.state, 'complete', JSON.stringify(shown))
      const [file = Buffer.alloc(0)] = await world.files(shown)
      const { packets, interfaces, lastComment } = readPcapng(file)
      const names = packets.map(({ port }) => interfaces[port]?.name)
      for (const device of devices.split(','))
        assert.equal(names.filter((name) => name === device).length, PACKETS, `${device} of ${devices}`)
      assert.match(String(lastComment), new RegExp(`^capfleet end: ${names.length} packets, complete$`))
    }
  })

  for (const coarse of ['foreign', 'foreign,other']) {
    test(`is that of a download where ${coarse} has microseconds`, async () => {
      foreign.behaviour = { isCoarse: true }
      other.behaviour = { isCoarse: coarse.includes('other') }
      const shown = await ended('foreign,other')
      assert.equal(shown.state, 'complete', JSON.stringify(shown))
      assert.deepEqual(await world.files(shown), [await world.directRange(`${RANGE}&Device=foreign,other`)])
    })
  }

  for (const [what, behaviour] of [
    ['is big-endian', { isBigEndian: true }],
    ['is big-endian and has microseconds', { isBigEndian: true, isCoarse: true }],
    ['sends its packets late', { order: pairsSwapped }],
  ] as const)
    test(`is that of a download where one device ${what}`, async () => {
      foreign.behaviour = {}
      other.behaviour = {}
      const inOrder = await world.directRange(`${RANGE}&Device=foreign,other`)
      foreign.behaviour = behaviour
      const shown = await ended('foreign,other')
      assert.equal(shown.state, 'complete', JSON.stringify(shown))
      assert.deepEqual(await world.files(shown), [inOrder])
      assert.deepEqual(await world.directRange(`${RANGE}&Device=foreign,other`), inOrder)
    })

  test('is that of a download where one device has the paths of old and sends its packets late', async () => {
    other.behaviour = {}
    const inOrder = makePcap(
      legacy.records.flatMap((packet, index) => [packet, other.records[index] as PcapRecord]),
    )
    const shown = await ended('legacy,other')
    assert.equal(shown.state, 'complete', JSON.stringify(shown))
    assert.deepEqual(await world.files(shown), [inOrder])
    assert.deepEqual(await world.directRange(`${RANGE}&Device=legacy,other`), inOrder)
  })

  test('of a capture whose packets come late has them in their order, and knows its earliest and latest', async () => {
    foreign.behaviour = { order: pairsSwapped }
    const { id } = await world.ended(await world.ordered(`StreamName=${API_CAPTURE}&Device=foreign`))
    const manifest = (await world.call(`/v1/exports/${id}/manifest`)).json() as unknown as Times
    const shown = await world.shown(id)
    assert.deepEqual(await world.files(shown), [makePcap(pairsSwapped(foreign.records))])
    const whole = {
      firstNs: String(API_BEGIN_NS),
      lastNs: String(API_BEGIN_NS + BigInt(PACKETS - 1) * API_STEP_NS),
    }
    for (const { firstNs, lastNs } of [...(shown.files as unknown as readonly Times[]), manifest])
      assert.deepEqual({ firstNs, lastNs }, whole)
  })

  for (const devices of ['foreign', 'foreign,other'])
    test(`of ${devices} is sliced by the gateway where they pass over Slice`, async () => {
      foreign.behaviour = { ignores: ['Slice'] }
      other.behaviour = { ignores: ['Slice'] }
      const shown = await world.ended(await world.ordered(`${RANGE}&Slice=7&Device=${devices}`))
      assert.equal(shown.state, 'complete', JSON.stringify(shown))
      const [file = Buffer.alloc(0)] = await world.files(shown)
      assert.deepEqual(file, await world.directRange(`${RANGE}&Slice=7&Device=${devices}`))
      const { snaplen, records } = readPcap(file)
      assert.deepEqual([snaplen, records.length], [7, PACKETS * devices.split(',').length])
      assert.ok(records.every(({ captured }) => captured.length === 7))
    })

  test('is little-endian where the only device is not', async () => {
    foreign.behaviour = { isBigEndian: true }
    const shown = await ended()
    assert.equal(shown.state, 'complete', JSON.stringify(shown))
    assert.deepEqual(await world.files(shown), [makePcap(foreign.records)])
  })

  test('is partial where they end with the connection', async () => {
    foreign.behaviour = { endsByClose: 'whole' }
    const shown = await ended()
    assert.equal(shown.state, 'partial', JSON.stringify(shown))
    assert.deepEqual(await world.files(shown), [makePcap(foreign.records)])
    assert.deepEqual(
      shown.devices.flatMap(({ missing }) => missing.map(({ final, error }) => [final, error.code])),
      [[true, 'device-unverified']],
    )
  })
})
