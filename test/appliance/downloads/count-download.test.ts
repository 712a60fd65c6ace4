/** /api/v1/pcap/count: the packets and bytes of the download with the same query, whatever that is. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { COUNT_LINES } from '../../../src/shared/contract/count-lines.ts'
import { eventually } from '../../support/eventually.ts'
import { randomMixedPacket } from '../../support/packets/mixed-packets.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import type { PcapRecord } from '../../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'

const START_NS = 1_793_610_000_000_000_000n
const STEP_NS = 1_000_000n
const PACKETS = 8_000
const FORCED = { 'capfleet-forced-filter': 'true' }
const FORMS = Object.values(COUNT_LINES).map((form) => form.strict())
const random = seededRandom()
let appliance: TempAppliance

type Line = Readonly<Record<string, unknown>>

before(async () => {
  appliance = await startTempAppliance({ segmentBytes: 1 << 20 })
  for (const name of ['one', 'two']) await importPackets(appliance, name, mixedPackets())
})
after(() => appliance[Symbol.asyncDispose]())

/** Some are there twice, a moment later, so that Dedup finds something. */
function mixedPackets(): readonly PcapRecord[] {
  return Array.from({ length: PACKETS }, (_, index) => {
    const ns = START_NS + BigInt(index) * STEP_NS
    const packet = randomMixedPacket(random, ns)
    return index % 3 === 0 ? [packet, { ...packet, ns: ns + 1_000n }] : [packet]
  }).flat()
}

async function importPackets(to: TempAppliance, name: string, packets: readonly PcapRecord[]): Promise<void> {
  const path = join(to.folder, `${name}.pcap`)
  await writeFile(path, makePcap(packets))
  await to.importFiles(name, path)
}

async function count(
  query: string,
  { of = appliance, headers = {} }: { of?: TempAppliance; headers?: Readonly<Record<string, string>> } = {},
): Promise<{ readonly lines: readonly Line[]; readonly end: Line }> {
  const answer = await of.get(`/api/v1/pcap/count?${query}`, { headers })
  assert.equal(answer.status, 200, answer.body.toString())
  assert.equal(answer.headers['content-type'], 'application/x-ndjson')
  const lines = answer.body
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
  for (const line of lines)
    assert.ok(
      FORMS.some((form) => form.safeParse(line).success),
      JSON.stringify(line),
    )
  const end = lines.at(-1) ?? {}
  assert.equal(end.end, true, JSON.stringify(end))
  return { lines, end }
}

async function downloaded(path: string): Promise<{ readonly packets: unknown; readonly bytes: string }> {
  const answer = await appliance.get(path)
  assert.equal(answer.status, 200, answer.body.toString())
  return { packets: answer.trailers['capfleet-packets'], bytes: String(answer.body.length) }
}

const FILTERS = [
  'udp port 53',
  'tcp',
  'greater 150',
  'vlan and udp',
  'host 10.0.0.3',
  'udp port 53 or tcp port 443',
  'less 1',
]

/** What a download may have, each with about even odds. */
function randomOptions(from: SeededRandom): Readonly<Record<string, string>> {
  const maybe = (pairs: Readonly<Record<string, string>>) => (from.next() < 0.35 ? pairs : {})
  return {
    ...maybe({ FilterBPF: from.pick(FILTERS) }),
    ...maybe({ FilterAddresses: from.pick(['10.0.0.1', '10.0.0.0/29', '10.0.0.2,10.0.0.7']) }),
    ...maybe({ FilterRE: from.pick(['\\x42{8}', '[a-f]{20}']) }),
    ...maybe({ FilterPort: from.pick(['0', '1']) }),
    ...maybe({ Slice: String(from.integer(1, 200)) }),
    ...maybe({ Strip: from.pick(['vlan', 'tunnels', 'all']) }),
    ...maybe({ Dedup: from.pick(['500', '2000', '5000000']) }),
    ...maybe({ TSMode: from.pick(['vendorA7280_eth64', 'vendorB_erspan3', 'vendorA7280_mac48']) }),
    ...maybe({ TSMax: String(from.integer(1, 8_000) * 1_000_000) }),
    ...maybe({ MaxPackets: String(from.integer(1, 3_000)) }),
    ...maybe({ MaxBytes: String(from.integer(24, 400_000)) }),
  }
}

describe(`it equals the download (SEED=${random.seed})`, () => {
  test('of a range, with any filters and limits', async () => {
    let found = 0n
    for (let round = 0; round < 60; round++) {
      const beginNs = START_NS + BigInt(random.integer(0, PACKETS)) * STEP_NS + BigInt(random.integer(0, 999))
      const range = {
        TSBegin: String(beginNs),
        TSEnd: String(beginNs + BigInt(random.integer(1, 8_000_000_000))),
        TSUnit: 'nanos',
      }
      const query = new URLSearchParams({ ...range, ...randomOptions(random) }).toString()
      const expected = await downloaded(`/api/v1/pcap/timerange?${query}`)
      const { end } = await count(query)
      assert.deepEqual({ packets: end.packets, bytes: end.bytes }, expected, query)
      assert.equal(end.complete, true, query)
      const forced = await count(query, { headers: FORCED })
      assert.deepEqual(
        forced.lines,
        [{ end: true, ...expected, complete: true, corruptBlocks: '0' }],
        `a forced filter hides progress, and what is stored: ${query}`,
      )
      found += BigInt(String(end.packets))
    }
    assert.ok(found > 5_000n, String(found))
  })

  test('of a capture, and of a part of one; compression does not matter', async () => {
    const filter = 'FilterBPF=udp+port+53'
    for (const [path, query] of [
      ['single', `StreamName=one&${filter}`],
      ['splittime', `StreamName=one&Start=${START_NS}&Stop=${START_NS + 900n * STEP_NS}&${filter}`],
    ] as const) {
      const { end } = await count(`${query}&Compression=zstd`)
      const expected = await downloaded(`/api/v1/pcap/${path}?${query}`)
      assert.deepEqual({ packets: end.packets, bytes: end.bytes }, expected, path)
      assert.ok(Number(end.packets) > 10, path)
    }
  })

  test('the bytes of the range are all read, and known from the first line', async () => {
    const { lines, end } = await count('StreamName=one&FilterBPF=tcp')
    const whole = await downloaded('/api/v1/pcap/single?StreamName=one')
    const rangeBytes = String(BigInt(whole.bytes) - 24n)
    assert.equal(lines[0]?.rangeBytes, rangeBytes)
    assert.deepEqual([end.rangeBytes, end.checkedBytes], [rangeBytes, rangeBytes])
  })
})

describe('CountBytesMax', () => {
  test(`what was counted up to an instant is exact (SEED=${random.seed})`, async () => {
    for (let round = 0; round < 20; round++) {
      const limit = random.integer(1, 3_000_000)
      const filter = new URLSearchParams({ FilterBPF: random.pick(FILTERS) }).toString()
      const isRange = random.next() < 0.5
      const query = isRange
        ? `TSBegin=${START_NS + 7n}&TSEnd=${START_NS + BigInt(PACKETS) * STEP_NS}&TSUnit=nanos&${filter}`
        : `StreamName=one&${filter}`
      const { end } = await count(`${query}&CountBytesMax=${limit}`)
      const rangeBytes = Number(end.rangeBytes)
      if (rangeBytes <= limit) {
        assert.deepEqual([end.complete, end.countedToNs], [true, undefined])
        continue
      }
      assert.equal(end.complete, false)
      const toNs = String(end.countedToNs)
      const part = isRange
        ? `timerange?${query.replace(/TSEnd=\d+/, `TSEnd=${toNs}`)}`
        : `splittime?${query}&Start=0&Stop=${toNs}`
      const expected = await downloaded(`/api/v1/pcap/${part}`)
      assert.deepEqual({ packets: end.packets, bytes: end.bytes }, expected, query)
      // The limit, or the least that is read: a millisecond, with two packets of each capture here.
      const checked = Number(end.checkedBytes)
      assert.ok(checked <= Math.max(limit, 2_000), `${checked} of ${limit}`)
      assert.ok(checked >= limit - 4_000, `${checked} of ${limit}`)
    }
  })

  test('it does not apply to callers with a filter: it would say how much is stored', async () => {
    const query = 'StreamName=one&FilterBPF=udp+port+53'
    const { lines } = await count(`${query}&CountBytesMax=1`, { headers: FORCED })
    const { packets, bytes } = await downloaded(`/api/v1/pcap/single?${query}`)
    assert.deepEqual(lines, [{ end: true, packets, bytes, complete: true, corruptBlocks: '0' }])
  })
})

describe('what cannot be counted, and when it ends early', () => {
  test('mistakes are refused before the first byte', async () => {
    for (const [query, code, expected] of [
      ['StreamName=one&Follow=1', 'bad-parameter', /Follow has no end/],
      ['StreamName=one&After=100', 'bad-parameter', /After does not apply/],
      ['StreamName=one&CountBytesMax=0', 'bad-parameter', /CountBytesMax/],
      ['StreamName=one&FilterBPF=prot+17', 'bad-bpf', /./],
      ['StreamName=nowhere', 'unknown-capture', /./],
      ['StreamName=one&Strict=1&NoSuch=1', 'bad-parameter', /NoSuch/],
    ] as const) {
      const answer = await appliance.get(`/api/v1/pcap/count?${query}`)
      assert.ok(answer.status >= 400, query)
      assert.equal(answer.json().code, code, query)
      assert.match(String(answer.json().detail), expected, query)
    }
    const strict = await appliance.get('/api/v1/pcap/count?StreamName=one&Strict=1&CountBytesMax=10')
    assert.equal(strict.status, 200)
  })

  test('HEAD answers without counting', async () => {
    const answer = await appliance.get('/api/v1/pcap/count?StreamName=one', { method: 'HEAD' })
    assert.deepEqual([answer.status, answer.body.length], [200, 0])
    assert.equal(await appliance.slotsUsed(), 0)
  })

  test('it takes one of the four slots, and a client that leaves ends it', async () => {
    await using large = await startTempAppliance()
    const captured = Buffer.alloc(1_400, 'x')
    const packets = Array.from({ length: 20_000 }, (_, index) => ({
      ns: START_NS + BigInt(index),
      originalLength: captured.length,
      captured,
    }))
    await importPackets(large, 'large', packets)
    const query = 'StreamName=large&FilterRE=y.*z'
    const outcomes = async (outcome: string): Promise<number> => {
      const { body } = await large.get('/metrics')
      return Number(
        new RegExp(`store_counts_total{outcome="${outcome}"} (\\d+)`).exec(body.toString())?.[1] ?? 0,
      )
    }
    // A count may have ended before its client has left.
    await eventually(
      async () => {
        const opened = await large.open(`/api/v1/pcap/count?${query}`)
        assert.equal(opened.response.statusCode, 200)
        opened[Symbol.dispose]()
        await eventually(async () => (await large.slotsUsed()) === 0, { message: 'the slot is free' })
        return (await outcomes('client-gone')) > 0
      },
      { message: 'a count that its client has left ends as such' },
    )
    await using held = new AsyncDisposableStack()
    for (let index = 0; index < 4; index++) held.use(await large.open(`/api/v1/pcap/single?StreamName=large`))
    const refused = await large.get(`/api/v1/pcap/count?${query}`)
    assert.equal(refused.json().code, 'download-slots-exhausted')
  })
})
