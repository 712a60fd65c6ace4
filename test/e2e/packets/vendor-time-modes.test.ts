// TSMode on the appliance: a few packets of each form, with the times that they must get.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { makePcap } from '../../support/packets/packet-maker.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { startTempAppliance, type TempApplianceOptions } from '../../support/processes/temp-appliance.ts'

const START_NS = 1_790_000_000_000_000_000n
const MILLISECOND_NS = 1_000_000n
const SECOND_NS = 1_000_000_000n
const ETHERNET = Buffer.from('0200ff00000202ffff0000010800', 'hex')

interface Stamped {
  readonly ns: bigint
  readonly captured: Buffer
  /** The expected time of the downloaded packet, or undefined if the packet keeps `ns`. */
  readonly vendorNs: bigint | undefined
}

/** Imports the packets, downloads them, and compares all times. */
async function checkTimes(
  mode: string,
  packets: readonly Stamped[],
  options?: TempApplianceOptions,
): Promise<void> {
  await using appliance = await startTempAppliance(options)
  const path = join(appliance.folder, 'made.pcap')
  const records = packets.map(({ ns, captured }) => ({ ns, captured, originalLength: captured.length }))
  await writeFile(path, makePcap(records))
  await appliance.importFiles('made', path)
  const answer = await appliance.get(`/api/v1/pcap/single?StreamName=made&TSMode=${mode}`)
  assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 400))
  const lines = (stamped: readonly { ns: bigint; captured: Buffer }[]): string[] =>
    stamped.map(({ ns, captured }) => `${captured.toString('hex')} ${ns}`).sort()
  const expected = packets.map(({ ns, captured, vendorNs }) => ({ captured, ns: vendorNs ?? ns }))
  assert.deepEqual(lines(readPcap(answer.body).records), lines(expected))
  const fallbacks = packets.filter(({ vendorNs }) => vendorNs === undefined).length
  assert.equal(answer.trailers['capfleet-ts-fallbacks'], String(fallbacks))
}

function ipv4(protocol: number, payload: Buffer): Buffer {
  const header = Buffer.from('45000000000000004000000000000000ffffffff', 'hex')
  header.writeUInt16BE(20 + payload.length, 2)
  header.writeUInt8(protocol, 9)
  return Buffer.concat([ETHERNET, header, payload])
}

/** Version 1, with its own tick 0 in place of the frame check sequence. */
function keyFrame(tick: bigint, utcNs: bigint): Buffer {
  const body = Buffer.alloc(46)
  body.writeBigUInt64BE(tick, 0)
  body.writeBigUInt64BE(utcNs, 8)
  return Buffer.concat([ipv4(253, body), Buffer.alloc(4)])
}

function overwritten(tick: bigint, mark: number): Buffer {
  const word = Buffer.alloc(4)
  const low = Number(tick % 2n ** 31n)
  word.writeUInt32BE(Math.floor(low / 128) * 256 + (low % 128))
  return Buffer.concat([ipv4(17, Buffer.alloc(40, mark)), word])
}

function withFcs(frame: Buffer): Buffer {
  const check = Buffer.alloc(4)
  check.writeUInt32LE(crc32(frame))
  return Buffer.concat([frame, check])
}

test('vendorA7150_overwrite counts 20/7 ns from the key frame, over a wrap and backwards', async () => {
  const keyTick = 2n ** 40n + 2n ** 31n - 7n
  // The switch's clock is minutes away from the capture hardware's.
  const utcNs = START_NS - 558n * SECOND_NS
  const at = (milliseconds: bigint): bigint => START_NS + milliseconds * MILLISECOND_NS
  const perMillisecond = 350_000n
  await checkTimes('vendorA7150_overwrite', [
    { ns: at(-1n), captured: overwritten(keyTick, 1), vendorNs: undefined },
    { ns: at(0n), captured: keyFrame(keyTick, utcNs), vendorNs: undefined },
    { ns: at(1n), captured: overwritten(keyTick + 14n, 2), vendorNs: utcNs + 40n },
    { ns: at(2n), captured: overwritten(keyTick - 1n, 3), vendorNs: utcNs - 3n },
    // Exactly at the allowed distance from the NIC's time, and one tick beyond it.
    { ns: at(100n), captured: overwritten(keyTick, 4), vendorNs: utcNs },
    { ns: at(100n), captured: overwritten(keyTick - 1n, 5), vendorNs: undefined },
    {
      ns: at(101n),
      captured: overwritten(keyTick + 101n * perMillisecond, 6),
      vendorNs: utcNs + 101_000_000n,
    },
    { ns: at(102n), captured: withFcs(ipv4(17, Buffer.alloc(40, 7))), vendorNs: undefined },
    {
      ns: at(30_000n),
      captured: overwritten(keyTick + 30_000n * perMillisecond, 8),
      vendorNs: utcNs + 30n * SECOND_NS,
    },
    { ns: at(30_001n), captured: overwritten(keyTick + 30_001n * perMillisecond, 9), vendorNs: undefined },
  ])
})

interface Mirrored {
  readonly session: number
  readonly granularity: number
  readonly low: bigint
  readonly platform?: number
  readonly high?: bigint
}

function mirrored({ session, granularity, low, platform, high = 0n }: Mirrored): Buffer {
  const header = Buffer.alloc(platform === undefined ? 12 : 20)
  header.writeUInt32BE(0x2000_0000 + session, 0)
  header.writeUInt32BE(Number(BigInt.asUintN(32, low)), 4)
  header.writeUInt16BE(granularity * 2 + (platform === undefined ? 0 : 1), 10)
  if (platform !== undefined) {
    header.writeUInt32BE(platform * 2 ** 26, 12)
    header.writeUInt32BE(Number(high), 16)
  }
  const gre = Buffer.from('100022eb00000001', 'hex')
  return ipv4(47, Buffer.concat([gre, header, ETHERNET, Buffer.alloc(40)]))
}

test('vendorB_erspan3 reads whole times from both parts of the header, within 7 days', async () => {
  const timeNs = START_NS + 5n * MILLISECOND_NS
  const packets = (
    [
      [timeNs, true],
      [timeNs + 8n * 86_400n * SECOND_NS, false],
    ] as const
  ).flatMap(([ns, isNear], index) => {
    const vendorNs = isNear ? ns : undefined
    const upper = [0, 3, 7].map((platform) =>
      mirrored({ session: index, granularity: 3, platform, low: ns, high: ns >> 32n }),
    )
    const seconds = [5, 6].map((platform) =>
      mirrored({ session: index, granularity: 2, platform, low: ns % SECOND_NS, high: ns / SECOND_NS }),
    )
    return [...upper, ...seconds].map((captured) => ({ ns: START_NS, captured, vendorNs }))
  })
  await checkTimes('vendorB_erspan3', packets)
})

test('vendorB_erspan3 takes nanoseconds alone for those of the nearest second', async () => {
  await checkTimes('vendorB_erspan3', [
    {
      ns: START_NS,
      captured: mirrored({ session: 1, granularity: 2, low: 999_000_000n }),
      vendorNs: START_NS - MILLISECOND_NS,
    },
    {
      ns: START_NS + 999n * MILLISECOND_NS,
      captured: mirrored({ session: 1, granularity: 2, low: 1n }),
      vendorNs: START_NS + SECOND_NS + 1n,
    },
    { ns: START_NS, captured: mirrored({ session: 1, granularity: 2, low: SECOND_NS }), vendorNs: undefined },
  ])
})

test('vendorB_erspan3 counts from the first packet of a session in units of 100 ns, 1 ns or 2.4 ns', async () => {
  const first = 2n ** 32n - 5n
  const laterNs = START_NS + 500n * MILLISECOND_NS
  const packet = (
    ns: bigint,
    session: number,
    granularity: number,
    low: bigint,
    vendorNs?: bigint,
  ): Stamped => ({
    ns,
    captured: mirrored({ session, granularity, low }),
    vendorNs,
  })
  await checkTimes('vendorB_erspan3', [
    packet(START_NS, 1, 1, first, START_NS),
    // The unit of a vendor's counter can be detected only from its second packet.
    packet(START_NS, 2, 3, first),
    packet(START_NS, 3, 3, first),
    packet(laterNs, 1, 1, first + 5_000_010n, laterNs + 1_000n),
    packet(laterNs, 2, 3, first + 500_000_007n, laterNs + 7n),
    packet(laterNs, 3, 3, first + 208_333_333n, START_NS + 499_999_999n),
    packet(laterNs, 1, 1, first + 50_000_000n),
  ])
})

/** 90 s away from the capture hardware's clock, in the packet's source address. */
function addressStamped(): Stamped {
  const vendorNs = START_NS + 90n * SECOND_NS
  const captured = Buffer.alloc(60)
  captured.writeUInt16BE(Number((vendorNs / SECOND_NS) % 65_536n), 6)
  return { ns: START_NS, captured, vendorNs }
}

test('a source address 90 s off the clock is no time for vendorA7280_mac48', async () => {
  await checkTimes('vendorA7280_mac48', [{ ...addressStamped(), vendorNs: undefined }])
})

test('downloads.mac48LimitMs says how far off the clock an address may be', async () => {
  const config = (mac48LimitMs: number) => ({ config: { downloads: { mac48LimitMs } } })
  await checkTimes('vendorA7280_mac48', [addressStamped()], config(90_000))
  await checkTimes('vendorA7280_mac48', [{ ...addressStamped(), vendorNs: undefined }], config(89_999))
})
