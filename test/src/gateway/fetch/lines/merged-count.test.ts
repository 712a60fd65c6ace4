// The count of a merge from those of its devices: never less than what the merge delivers, and no more than must be.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countedPart, mergedCount } from '../../../../../src/gateway/fetch/lines/merged-count.ts'
import { withinBounds } from '../../../../../src/gateway/fleet/plan/within-bounds.ts'
import { UNBOUNDED } from '../../../../../src/shared/base/caller.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'

const HEADER = 24
const RECORD = 16

interface Packet {
  readonly atNs: number
  readonly bytes: number
}
interface Limits {
  readonly MaxPackets?: number
  readonly MaxBytes?: number
  readonly TSMax?: number
  readonly Dedup?: number
  readonly Slice?: number
}

function queryOf(limits: Limits) {
  const given = new Map(Object.entries({ TSBegin: '1', TSEnd: '1000', TSUnit: 'nanos', ...limits }))
  const texts = new Map([...given].map(([name, value]) => [name, String(value)]))
  return withinBounds(parseDownloadQuery('timerange', texts, { zone: 'UTC', nowNs: 0n }), UNBOUNDED)
}

/** What passes the limits, in this order. */
function limited(packets: readonly Packet[], { MaxPackets, MaxBytes, TSMax }: Limits): readonly Packet[] {
  const kept: Packet[] = []
  let bytes = HEADER
  for (const packet of packets) {
    const isLate = TSMax !== undefined && packet.atNs > (packets[0]?.atNs ?? 0) + TSMax
    if (isLate || kept.length === MaxPackets || bytes + packet.bytes > (MaxBytes ?? Number.POSITIVE_INFINITY))
      break
    bytes += packet.bytes
    kept.push(packet)
  }
  return kept
}

const bytesOf = (packets: readonly Packet[]) => packets.reduce((sum, { bytes }) => sum + bytes, HEADER)

/** The answers of devices with these packets. */
function countsOf(devices: readonly (readonly Packet[])[], limits: Limits) {
  const { maxPackets, maxBytes, tsMaxNs } = countedPart(queryOf(limits))
  const asked = {
    ...(maxPackets === undefined ? {} : { MaxPackets: Number(maxPackets) }),
    ...(maxBytes === undefined ? {} : { MaxBytes: Number(maxBytes) }),
    ...(tsMaxNs === undefined ? {} : { TSMax: Number(tsMaxNs) }),
  }
  return devices
    .map((packets) => limited(packets, asked))
    .map((packets) => ({ packets: String(packets.length), bytes: String(bytesOf(packets)) }))
}

function mergeOf(devices: readonly (readonly Packet[])[], limits: Limits): readonly Packet[] {
  return limited(
    devices.flat().sort((a, b) => a.atNs - b.atNs),
    limits,
  )
}

const random = seededRandom()

test(`is a bound, and what it calls exact is exact (SEED=${random.seed})`, () => {
  let exact = 0
  for (let round = 0; round < 2_000; round += 1) {
    const slice = random.integer(0, 1) === 0 ? undefined : random.integer(1, 100)
    const devices = Array.from({ length: random.integer(2, 4) }, () =>
      Array.from({ length: random.integer(0, 8) }, () => ({
        atNs: random.integer(0, 1_000),
        bytes: RECORD + Math.min(random.integer(0, 200), slice ?? 200),
      })).sort((a, b) => a.atNs - b.atNs),
    )
    const limits = {
      ...(random.integer(0, 1) === 0 ? {} : { MaxPackets: random.integer(1, 30) }),
      ...(random.integer(0, 1) === 0 ? {} : { MaxBytes: random.integer(24, 3_000) }),
      ...(random.integer(0, 2) === 0 ? { TSMax: random.integer(1, 1_000) } : {}),
      ...(slice === undefined ? {} : { Slice: slice }),
    }
    const merge = mergeOf(devices, limits)
    const { packets, bytes, isExact } = mergedCount(countsOf(devices, limits), queryOf(limits))
    const shown = JSON.stringify({ devices, limits })
    assert.ok(packets >= BigInt(merge.length), `packets of ${shown}`)
    assert.ok(bytes >= BigInt(bytesOf(merge)), `bytes of ${shown}`)
    if (!isExact) continue
    exact += 1
    assert.deepEqual([packets, bytes], [BigInt(merge.length), BigInt(bytesOf(merge))], shown)
  }
  assert.ok(exact > 100, `${exact} are exact`)
})

const TEN = Array.from({ length: 10 }, (_, index) => ({ atNs: index, bytes: RECORD + 84 }))
for (const { what, limits, packets, bytes, isExact = false } of [
  { what: 'no limit', limits: {}, packets: 20, bytes: 24 + 2_000, isExact: true },
  // Each device is asked for three: three of these six packets are left out.
  { what: 'MaxPackets', limits: { MaxPackets: 3 }, packets: 3, bytes: 24 + 6 * 100 - 3 * RECORD },
  {
    what: 'MaxPackets of short packets',
    limits: { MaxPackets: 3, Slice: 100 },
    packets: 3,
    bytes: 24 + 3 * 116,
  },
  {
    what: 'MaxPackets that all packets reach',
    limits: { MaxPackets: 20 },
    packets: 20,
    bytes: 2_024,
    isExact: true,
  },
  { what: 'MaxBytes', limits: { MaxBytes: 324 }, packets: 300 / RECORD, bytes: 324 },
  // 1,700 bytes are left out, and no packet has more than 116.
  { what: 'MaxBytes of short packets', limits: { MaxBytes: 324, Slice: 100 }, packets: 20 - 15, bytes: 324 },
  { what: 'both', limits: { MaxPackets: 2, MaxBytes: 1_000 }, packets: 2, bytes: 24 + 4 * 100 - 2 * RECORD },
  {
    what: 'MaxPackets with Dedup',
    limits: { MaxPackets: 3, Dedup: 5 },
    packets: 3,
    bytes: 24 + 2_000 - 17 * RECORD,
  },
  { what: 'Dedup', limits: { Dedup: 5 }, packets: 20, bytes: 2_024 },
  { what: 'TSMax', limits: { TSMax: 500 }, packets: 20, bytes: 2_024 },
])
  test(`of two devices with ten packets each: ${what}`, () => {
    const count = mergedCount(countsOf([TEN, TEN], limits), queryOf(limits))
    assert.deepEqual(count, { packets: BigInt(Math.floor(packets)), bytes: BigInt(bytes), isExact })
  })

test('a limit of a merge in which only one device has packets is exact', () => {
  for (const limits of [{ MaxPackets: 3 }, { TSMax: 4 }, { MaxPackets: 3, TSMax: 4 }]) {
    const merge = mergeOf([TEN, []], limits)
    assert.deepEqual(mergedCount(countsOf([TEN, []], limits), queryOf(limits)), {
      packets: BigInt(merge.length),
      bytes: BigInt(bytesOf(merge)),
      isExact: true,
    })
  }
})
