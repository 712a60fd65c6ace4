// The fleet's time range against two oracles: a plain sort of what each device returns, and mergecap.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type PcapRecord, readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { type DemoProcess, startDemo, temporaryHome } from '../../support/processes/demo-process.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const CASES = process.env.CAPFLEET_LONG === '1' ? 200 : 15
const BEGIN_NS = 1_793_610_000_000_000_000n
const LENGTH_MS = 300_000

describe('the merge of three devices', () => {
  let home: Awaited<ReturnType<typeof temporaryHome>>
  let demo: DemoProcess
  let folder: string

  before(async () => {
    home = await temporaryHome()
    demo = await startDemo(home.path)
    folder = await mkdtemp(join(tmpdir(), 'capfleet-merge-'))
  })
  after(async () => {
    await demo[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  async function download(url: string, user: string, password: string): Promise<Buffer> {
    const answer = await fetch(url, { headers: { authorization: `Basic ${btoa(`${user}:${password}`)}` } })
    assert.equal(answer.status, 200, await (answer.ok ? '' : answer.text()))
    return Buffer.from(await answer.arrayBuffer())
  }

  /** The gateway's merge, and each device's own part of the same query. */
  async function fetchAll(query: string): Promise<{ merged: Buffer; parts: Buffer[] }> {
    const path = `/api/v1/pcap/timerange?${query}`
    const { facts } = demo
    const merged = await download(facts.gatewayUrl + path, facts.user, facts.password)
    const parts = await Promise.all(
      facts.devices.map(({ url, user, password }) => download(url + path, user, password)),
    )
    return { merged, parts }
  }

  test(`equals a sort by (time, device) and mergecap, ${CASES} random ranges`, async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    let packets = 0
    for (let index = 0; index < CASES; index += 1) {
      const query = randomQuery(random)
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
    const at = (ms: number): bigint => BEGIN_NS + BigInt(ms) * 1_000_000n
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
    const lengthMs = random.pick([0, 1, 50, 500, 2000, 5000])
    const beginNs = BEGIN_NS + BigInt(beginMs) * 1_000_000n + BigInt(random.integer(0, 999_999))
    const filter = random.pick([
      '',
      '',
      '&FilterBPF=tcp+port+443',
      '&FilterBPF=udp',
      '&Slice=64',
      '&FilterBPF=ip6',
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
