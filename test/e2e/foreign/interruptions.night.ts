/**
 * For each way in which answers can end, FOREIGN_BREAKS connections (20) of a third-party appliance are broken off at a
 * random byte. Each download, merge, export and resumed download is complete, or its client sees that it is not. SEED
 * repeats a run.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PCAP_HEADER_BYTES } from '../../../src/shared/pcap/pcap-sizes.ts'
import {
  API_BEGIN_NS,
  API_RECORD_BYTES,
  API_STEP_NS,
  type ApiBehaviour,
  ApiDevice,
} from '../../support/devices/api-device.ts'
import { ExportWorld } from '../../support/exports/export-world.ts'
import { ForeignCaller, type Judged, sameBytes } from '../../support/exports/foreign-caller.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'

const BREAKS = Number(process.env.FOREIGN_BREAKS ?? 20)
const PACKETS = 500
const RANGE = `TSBegin=${API_BEGIN_NS}&TSEnd=${API_BEGIN_NS + BigInt(PACKETS) * API_STEP_NS}&TSUnit=nanos`
const FRAMINGS: Readonly<Record<string, ApiBehaviour>> = {
  length: {},
  chunks: { isChunked: true },
  close: { endsByClose: 'whole' },
}
const WAYS = ['relay', 'merge', 'export', 'resume'] as const
type Way = (typeof WAYS)[number]

test('a connection that breaks off anywhere makes no file short in silence', async (t) => {
  const { seed } = seededRandom()
  t.diagnostic(`SEED=${seed}`)
  await using parts = new AsyncDisposableStack()
  const devices: ApiDevice[] = []
  for (const name of [...Object.keys(FRAMINGS), 'zz'])
    devices.push(parts.use(await ApiDevice.start(name, PACKETS)))
  process.env.FOREIGN_PASSWORD = devices[0]?.password ?? ''
  const world = parts.use(
    await ExportWorld.create({
      captureBytes: 0,
      settings: {
        devices: devices.map(({ config }) => ({ ...config, password: { env: 'FOREIGN_PASSWORD' } })),
        health: { failuresMax: 1_000_000, intervalS: 60 },
      },
    }),
  )
  parts.use(await startTempWorker(world.gateway))
  const other = devices.at(-1)
  assert.ok(other)
  const rounds = Object.entries(FRAMINGS).map(async ([name, behaviour], index) => {
    const device = devices[index]
    assert.ok(device)
    device.behaviour = behaviour
    const breaks = new Breaks(new ForeignCaller(world), { device, other, random: seededRandom(seed + index) })
    for (let round = 0; round < BREAKS; round += 1) await breaks.round(WAYS[round % WAYS.length] as Way)
    return [name, breaks.seen] as const
  })
  for (const [name, seen] of await Promise.all(rounds)) {
    for (const way of WAYS) t.diagnostic(`${name}, ${way}: ${lineOf(seen.get(way))}`)
    const all = [...seen.values()].flat()
    const whole = all.filter((one) => one === 'right').length
    t.diagnostic(`${name}: ${whole} whole, ${all.length - whole} visibly not`)
    const silent = all.filter((one) => one.includes('SILENT'))
    assert.deepEqual(silent, [], `SEED=${seed}`)
  }
})

class Breaks {
  readonly seen = new Map<Way, string[]>()
  readonly #caller: ForeignCaller
  readonly #device: ApiDevice
  readonly #other: ApiDevice
  readonly #random: SeededRandom
  readonly #right: Buffer
  readonly #path: string

  constructor(
    caller: ForeignCaller,
    { device, other, random }: { device: ApiDevice; other: ApiDevice; random: SeededRandom },
  ) {
    this.#caller = caller
    this.#device = device
    this.#other = other
    this.#random = random
    this.#right = makePcap(device.records)
    this.#path = `/devices/${device.name}/api/v1/pcap/timerange`
  }

  /** One connection breaks off. */
  async round(way: Way): Promise<void> {
    this.#device.breaks.push({ afterBytes: this.#place(), by: this.#random.pick(['reset', 'close']) })
    const { outcome, told } = await this.#asked(way)
    assert.deepEqual(this.#device.breaks, [], 'the connection did break off')
    if (told !== undefined) assert.ok(told.detail.includes(`device ${this.#device.name}`), told.detail)
    this.seen.set(way, [...(this.seen.get(way) ?? []), outcome])
  }

  /** One break in four is between two records, where only the framing can reveal it. */
  #place(): number {
    const byte = this.#random.integer(0, this.#right.length - 1)
    if (byte < PCAP_HEADER_BYTES || this.#random.next() < 0.75) return byte
    return byte - ((byte - PCAP_HEADER_BYTES) % API_RECORD_BYTES)
  }

  async #asked(way: Way): Promise<Judged> {
    const { name, records } = this.#device
    if (way === 'export') return await this.#caller.export(`${RANGE}&Device=${name}`, this.#right)
    if (way === 'merge') {
      const both = [...records, ...this.#other.records].toSorted((a, b) => Number(a.ns - b.ns))
      const path = `/api/v1/pcap/timerange?${RANGE}&Device=${name},${this.#other.name}`
      return await this.#caller.download(path, makePcap(both))
    }
    const taken = await this.#caller.take(`${this.#path}?${RANGE}`)
    const judged = await this.#caller.judge(taken, this.#right)
    if (way === 'relay' || !taken.isCut || judged.outcome !== 'cut') return judged
    const size = this.#random.integer(0, sameBytes(taken.body, this.#right))
    return await this.#caller.resume(taken, { path: this.#path, right: this.#right, size })
  }
}

/** How often each outcome occurred. */
function lineOf(outcomes: readonly string[] = []): string {
  const counts = Map.groupBy(outcomes, (outcome) => outcome)
  return [...counts].map(([outcome, { length }]) => `${length} ${outcome}`).join(', ')
}
