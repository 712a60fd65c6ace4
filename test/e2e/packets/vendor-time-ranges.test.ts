// Clocks that are read from earlier packets: a packet has the same time in every range, filter and Slice.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { storedCaptureOf } from '../../support/disks/store-captures.ts'
import { type PcapRecord, readPcap } from '../../support/packets/pcap-records.ts'
import { makePcapng } from '../../support/packets/pcapng-maker.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const random = seededRandom()
const START_NS = 1_790_000_000_000_000_000n
/** The switch's clock is far from the capture hardware's. */
const UTC_OFFSET_NS = -558_600_000_000n
const PACKETS = 3_000
const ETHERNET = Buffer.from('0200ff0000020200ff0000010800', 'hex')
const SWITCH_TICK = { nanos: 20n, ticks: 7n }

interface TimedRecord extends PcapRecord {
  /** The vendor's time, or undefined if it cannot be known. */
  readonly vendorNs: bigint | undefined
}

function ipv4(protocol: number, payload: Buffer, address = 0x0a000001): Buffer {
  const bytes = Buffer.alloc(20)
  bytes.writeUInt8(0x45, 0)
  bytes.writeUInt16BE(20 + payload.length, 2)
  bytes.writeUInt8(64, 8)
  bytes.writeUInt8(protocol, 9)
  bytes.writeUInt32BE(address, 12)
  bytes.writeUInt32BE(0x0a000002, 16)
  return Buffer.concat([ETHERNET, bytes, payload])
}

function udp(port: number, payload: Buffer): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt16BE(40_000, 0)
  bytes.writeUInt16BE(port, 2)
  bytes.writeUInt16BE(8 + payload.length, 4)
  return Buffer.concat([bytes, payload])
}

/** Unique, and most of a kilobyte long, so that there are several segments. */
function payloadOf(index: number): Buffer {
  return Buffer.alloc(900, `packet ${String(index).padStart(6, '0')};`)
}

const record = (ns: bigint, captured: Buffer, vendorNs?: bigint): TimedRecord => ({
  ns,
  captured,
  originalLength: captured.length,
  vendorNs,
})

/** Counter values of the switch since START_NS, starting so that the 31 bits wrap on the way. */
function switchTick(ns: bigint): bigint {
  return 2_000_000_000n + ((ns - START_NS) * SWITCH_TICK.ticks) / SWITCH_TICK.nanos
}

function tickBytes(tick: bigint): Buffer {
  const low = Number(tick % 2n ** 31n)
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(Math.floor(low / 128) * 256 + (low % 128))
  return bytes
}

function keyframe(ns: bigint): TimedRecord {
  const body = Buffer.alloc(62)
  body.writeBigUInt64BE(switchTick(ns), 0)
  body.writeBigUInt64BE(ns + UTC_OFFSET_NS, 8)
  body.writeBigUInt64BE(1n, 24)
  body.writeBigUInt64BE(1n, 32)
  body.writeUInt8(1, 60)
  const frame = ipv4(253, Buffer.concat([body, Buffer.alloc(4)]))
  // The tick follows the IP packet.
  frame.writeUInt16BE(82, 16)
  return record(ns, frame)
}

/** 7150 with inserted ticks: a key frame each second, and a packet every 20 ms starting at the first second. */
function switchCapture(): TimedRecord[] {
  const records: TimedRecord[] = []
  let key: { tick: bigint; utcNs: bigint } | undefined
  for (let index = 0; index < PACKETS; index++) {
    const ns = START_NS + BigInt(index) * 20_000_000n
    if (index % 50 === 25) {
      records.push(keyframe(ns - 1_000n))
      key = { tick: switchTick(ns - 1_000n), utcNs: ns - 1_000n + UTC_OFFSET_NS }
    }
    const tick = switchTick(ns - BigInt(random.integer(0, 5_000)))
    const frame = Buffer.concat([ipv4(17, udp(50 + (index % 3), payloadOf(index))), tickBytes(tick)])
    records.push(record(ns, frame, key && key.utcNs + floorTicks(tick - key.tick)))
  }
  return records
}

/** Nanoseconds of this many ticks, rounded down, also below 0. */
function floorTicks(ticks: bigint): bigint {
  const { nanos, ticks: per } = SWITCH_TICK
  const product = ticks * nanos
  const rest = ((product % per) + per) % per
  return (product - rest) / per
}

const SESSION_UNIT_NS = 100_000n

/** ERSPAN III with free-running counters of 100 us, two sessions. */
function mirrorCapture(): TimedRecord[] {
  const anchors = new Map<number, { ns: bigint; counter: bigint }>()
  return Array.from({ length: PACKETS }, (_, index) => {
    const ns = START_NS + BigInt(index) * 20_000_000n + BigInt(random.integer(0, 300_000))
    const session = index % 2
    const counter = (ns - START_NS) / SESSION_UNIT_NS + BigInt(session) * 77_777n
    const anchor = anchors.get(session) ?? { ns, counter }
    anchors.set(session, anchor)
    const header = Buffer.alloc(20)
    header.writeUInt32BE(0x1000_22eb, 0)
    header.writeUInt32BE(index, 4)
    header.writeUInt32BE(0x2000_0000 + session, 8)
    header.writeUInt32BE(Number(counter), 12)
    const inner = ipv4(17, udp(50 + (index % 3), payloadOf(index)))
    const frame = ipv4(47, Buffer.concat([header, inner]))
    return record(ns, frame, anchor.ns + (counter - anchor.counter) * SESSION_UNIT_NS)
  })
}

describe(`times from earlier packets (SEED=${random.seed})`, () => {
  let appliance: TempAppliance
  before(async () => {
    appliance = await startTempAppliance({ segmentBytes: 1 << 20 })
  })
  after(() => appliance[Symbol.asyncDispose]())

  async function download(path: string): Promise<PcapRecord[]> {
    const answer = await appliance.get(path)
    assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 400))
    return [...readPcap(answer.body).records]
  }

  for (const [mode, records] of [
    ['vendorA7150_insert', switchCapture()],
    ['vendorB_erspan3', mirrorCapture()],
  ] as const) {
    test(`${mode}: right in the whole, and the same in any part`, async () => {
      const path = join(appliance.folder, `${mode}.pcapng`)
      await writeFile(
        path,
        makePcapng(
          1,
          records.map((packet) => ({ ...packet, port: 0 })),
        ),
      )
      await appliance.importFiles(mode, path)
      const { table } = await storedCaptureOf(appliance.storePath, mode)
      assert.ok(table.segments >= 3, 'several segments')
      const times = new Map<string, bigint>()
      for (const { captured, ns, vendorNs } of records) times.set(captured.toString('latin1'), vendorNs ?? ns)
      const known = (delivered: readonly PcapRecord[], where: string): void => {
        for (const { captured, ns } of delivered) {
          assert.equal(
            ns,
            times.get(captured.toString('latin1')),
            `${where}: ${captured.toString('latin1', 42, 60)}`,
          )
        }
      }
      const whole = await download(`/api/v1/pcap/single?StreamName=${mode}&TSMode=${mode}`)
      assert.equal(whole.length, records.length)
      known(whole, 'whole')
      for (let round = 0; round < 25; round++) {
        const [begin = 0, end = 0] = [random.integer(0, PACKETS), random.integer(0, PACKETS)].toSorted(
          (a, b) => a - b,
        )
        const beginNs = START_NS + BigInt(begin) * 20_000_000n
        const endNs = START_NS + BigInt(end) * 20_000_000n
        const more = random.pick([
          '',
          '&FilterBPF=udp+port+51',
          '&FilterBPF=udp+port+51&FilterBPFDecap=true',
          '&FilterRE=packet+0',
        ])
        const part = await download(
          `/api/v1/pcap/timerange?TSBegin=${beginNs}&TSEnd=${endNs}&TSUnit=nanos&TSMode=${mode}&FilterFrame=capture.port==0${more}`,
        )
        known(part, `SEED=${random.seed} ${beginNs}-${endNs}${more}`)
        if (more !== '') continue
        assert.equal(part.length, records.filter(({ ns }) => ns >= beginNs && ns < endNs).length)
      }
      await appliance.get(`/pcap/del?StreamName=${mode}`)
    })
  }
})
