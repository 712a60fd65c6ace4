/**
 * Third-party devices whose time ranges have other packets than those from the start to just before the end: of ranges that
 * follow one another, merged or exported in parts, each packet is in exactly one.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { API_BEGIN_NS, API_STEP_NS, type ApiBehaviour, ApiDevice } from '../../support/devices/api-device.ts'
import { ExportWorld } from '../../support/exports/export-world.ts'
import { type PcapRecord, readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'

const PACKETS = 400
const PART_S = 6
/** Packets at the borders of the parts, which are no whole seconds. */
const [BEGIN, END] = [4, 370]
const PART_STEPS = Number((BigInt(PART_S) * 1_000_000_000n) / API_STEP_NS)

/** By nanoseconds, of which its files lack the last three digits. */
const finer = (records: readonly PcapRecord[]) =>
  records.map((record) => ({ ...record, ns: record.ns + 500n }))

const KINDS: Readonly<Record<string, ApiBehaviour>> = {
  'half-open': {},
  inclusive: { ranges: 'inclusive' },
  'inclusive-coarse': { ranges: 'inclusive', isCoarse: true },
  'looks-up-finer-times': { isCoarse: true, order: finer },
  'rounds-its-files': { isCoarse: true, ranges: 'earlier' },
  seconds: { ranges: 'seconds' },
  'seconds-rounded-down': { ranges: 'seconds, rounded down' },
  'without-v1-paths': { ranges: 'inclusive', missing: /^\/api\/v1\// },
}

describe('of ranges that follow one another', () => {
  const parts = new AsyncDisposableStack()
  const devices = new Map<string, ApiDevice>()
  let other: ApiDevice
  let world: ExportWorld

  before(async () => {
    for (const [name, behaviour] of Object.entries(KINDS))
      devices.set(name, parts.use(await ApiDevice.start(name, PACKETS, behaviour)))
    other = parts.use(await ApiDevice.start('zz', PACKETS))
    process.env.FOREIGN_PASSWORD = other.password
    const all = [...devices.values(), other]
    world = parts.use(
      await ExportWorld.create({
        captureBytes: 0,
        settings: {
          devices: all.map(({ config }) => ({ ...config, password: { env: 'FOREIGN_PASSWORD' } })),
        },
      }),
    )
    parts.use(await startTempWorker(world.gateway))
  })
  after(() => parts.disposeAsync())

  const deviceOf = (name: string) => devices.get(name) ?? other
  /** A border between two packets where the device looks its packets up by finer times than it shows. */
  const timeOf = (name: string, packet: number) =>
    API_BEGIN_NS + BigInt(packet) * API_STEP_NS + (name === 'looks-up-finer-times' ? 400n : 0n)
  const linesOf = (records: readonly PcapRecord[], beginNs: bigint, endNs: bigint) =>
    recordLines(records.filter(({ ns }) => ns >= beginNs && ns < endNs))

  for (const name of Object.keys(KINDS)) {
    const borders = Array.from({ length: 4 }, (_, part) => BEGIN + part * PART_STEPS)
    const ranges = borders.map((from, part) => [from, borders[part + 1] ?? END] as const)

    test(`each packet is in one part of an export: ${name}`, async () => {
      const { records } = deviceOf(name)
      const range = `TSBegin=${timeOf(name, BEGIN)}&TSEnd=${timeOf(name, END)}&TSUnit=nanos`
      const ended = await world.ended(await world.ordered(`${range}&Device=${name}&PartTime=${PART_S}s`))
      assert.equal(ended.state, 'complete', JSON.stringify(ended))
      const files = await world.files(ended)
      assert.deepEqual(
        files.map((file) => recordLines(readPcap(file).records)),
        ranges.map(([from, to]) => linesOf(records, timeOf(name, from), timeOf(name, to))),
      )
    })

    test(`each packet is in one merge: ${name}`, async () => {
      const { records } = deviceOf(name)
      const both = [...records, ...other.records].toSorted((a, b) => Number(a.ns - b.ns))
      const [, second = 0] = borders
      for (const [from, to] of [
        [BEGIN, BEGIN + 2 * PART_STEPS],
        [BEGIN + 2 * PART_STEPS, END],
        // From a whole second to another one.
        [50, 100],
        ...(name === 'seconds-rounded-down' ? [] : [[second, second + 7] as const]),
      ] as const) {
        const range = `TSBegin=${timeOf(name, from)}&TSEnd=${timeOf(name, to)}&TSUnit=nanos`
        const { status, body } = await world.call(`/api/v1/pcap/timerange?${range}&Device=${name},zz`)
        assert.equal(status, 200, body.toString())
        assert.deepEqual(
          recordLines(readPcap(body).records),
          linesOf(both, timeOf(name, from), timeOf(name, to)),
        )
      }
    })

    test(`TSMax counts from the first packet of the range: ${name}`, async () => {
      const [from, to] = [timeOf(name, BEGIN + 1) - 1n, timeOf(name, END)]
      const range = `TSBegin=${from}&TSEnd=${to}&TSUnit=nanos&TSMax=${3n * API_STEP_NS}`
      const { status, body } = await world.call(`/api/v1/pcap/timerange?${range}&Device=${name}`)
      const expected = deviceOf(name)
        .records.filter(({ ns }) => ns >= from)
        .slice(0, 3)
      assert.deepEqual([status, recordLines(readPcap(body).records)], [200, recordLines(expected)])
    })
  }
})
