// The fleet's time range against two oracles: a plain sort of what each device returns, and mergecap.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { EXPORT_BEGIN_NS, EXPORT_SECONDS } from '../../support/exports/export-captures.ts'
import { ExportWorld } from '../../support/exports/export-world.ts'
import { type PcapRecord, readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const CASES = process.env.CAPFLEET_LONG === '1' ? 200 : 15
const LENGTH_MS = EXPORT_SECONDS * 1_000
/** Of each device, with some at the same time as those of others. */
const CAPTURE_BYTES = 1_500_000

describe('the merge of three devices', () => {
  let world: ExportWorld
  let folder: string

  before(async () => {
    world = await ExportWorld.create({ captureBytes: CAPTURE_BYTES })
    folder = await mkdtemp(join(tmpdir(), 'capfleet-merge-'))
  })
  after(async () => {
    await world[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  /** The gateway's merge, and each device's own part of the same query. */
  async function fetchAll(query: string): Promise<{ merged: Buffer; parts: Buffer[] }> {
    const path = `/api/v1/pcap/timerange?${query}`
    const answers = await Promise.all(world.devices.map(({ appliance }) => appliance.get(path)))
    for (const { status, body } of answers) assert.equal(status, 200, body.toString())
    return { merged: await world.direct(path), parts: answers.map(({ body }) => body) }
  }

  test(`equals a sort by (time, device) and mergecap, ${CASES} random ranges`, async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    let packets = 0
    for (let index = 0; index < CASES; index += 1) {
      // However short the others are, the first one has all packets.
      const query =
        index === 0
          ? `TSBegin=0&TSEnd=${EXPORT_BEGIN_NS + BigInt(LENGTH_MS) * 1_000_000n}`
          : randomQuery(random)
      const { merged, parts } = await fetchAll(query)
      const mine = readPcap(merged).records
      packets += mine.length
      assert.deepEqual(recordLines(mine), recordLines(sortedUnion(parts)), query)
      assert.deepEqual(canonical(mine), canonical(readPcap(await mergecap(parts)).records), query)
    }
    t.diagnostic(`${packets} packets compared`)
    assert.ok(packets > CASES * 100)
  })

  test('two adjacent ranges concatenate to the whole, nothing twice', async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    const at = (ms: number): bigint => EXPORT_BEGIN_NS + BigInt(ms) * 1_000_000n
    const whole = readPcap((await fetchAll(`TSBegin=${at(0)}&TSEnd=${at(20_000)}`)).merged).records
    for (let index = 0; index < CASES / 5; index += 1) {
      // Cut at a packet's own timestamp as often as between packets.
      const cutNs = index % 2 === 0 ? (random.pick(whole)?.ns ?? 0n) : at(random.integer(0, 20_000))
      const first = readPcap((await fetchAll(`TSBegin=${at(0)}&TSEnd=${cutNs}`)).merged).records
      const second = readPcap((await fetchAll(`TSBegin=${cutNs}&TSEnd=${at(20_000)}`)).merged).records
      assert.deepEqual(recordLines([...first, ...second]), recordLines(whole), `cut at ${cutNs}`)
    }
  })

  function randomQuery(random: ReturnType<typeof seededRandom>): string {
    const beginMs = random.integer(-1000, LENGTH_MS)
    const lengthMs = random.pick([0, 1, 200, 2000, 8000, 20_000])
    const beginNs = EXPORT_BEGIN_NS + BigInt(beginMs) * 1_000_000n + BigInt(random.integer(0, 999_999))
    const filter = random.pick([
      '',
      '',
      '&FilterBPF=greater+700',
      '&FilterBPF=less+200',
      '&Slice=64',
      '&FilterBPF=greater+4000',
    ])
    return `TSBegin=${beginNs}&TSEnd=${beginNs + BigInt(lengthMs) * 1_000_000n}${filter}`
  }

  async function mergecap(parts: readonly Buffer[]): Promise<Buffer> {
    const names = parts.map((_part, index) => join(folder, `${index}.pcap`))
    await Promise.all(parts.map((part, index) => writeFile(names[index] ?? '', part)))
    return execFileSync('mergecap', ['-F', 'nsecpcap', '-w', '-', ...names], {
      maxBuffer: 1 << 30,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  }
})

function sortedUnion(parts: readonly Buffer[]): PcapRecord[] {
  const tagged = parts.flatMap((part, device) => readPcap(part).records.map((record) => ({ record, device })))
  // The sort is stable, so packets of one device and instant keep their order.
  return tagged
    .sort((a, b) => (a.record.ns === b.record.ns ? a.device - b.device : a.record.ns < b.record.ns ? -1 : 1))
    .map(({ record }) => record)
}

/** Packets of one instant in a canonical order, because mergecap has another rule for ties. */
function canonical(records: readonly PcapRecord[]): string[] {
  const lines = recordLines(records)
  return lines.sort()
}
