// A store on a small file system is filled and reclaimed while readers run: no packet is ever wrong or silently
// missing. CAPFLEET_LONG=1 fills it 50 times.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { mountSmallDisk } from '../../support/disks/small-disk.ts'
import { makePacket, makePcap, makeRecord } from '../../support/packets/packet-maker.ts'
import { pause } from '../../support/pause.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'

const ROUNDS = process.env.CAPFLEET_LONG === '1' ? 50 : 3
const MEBIBYTE = 1 << 20
const STORE_MIB = 12
const FREE_MIB = 4
const PACKET_BYTES = 9_000
const RECORD_BYTES = 16 + PACKET_BYTES
const PACKETS_PER_CAPTURE = 200
const SEGMENT_BYTES = 400_000
const START_NS = 1_700_000_000_000_000_000n
const at = (i: number): bigint => START_NS + BigInt(i) * 1_000_000n
const numberOf = (ns: bigint): number => Number((ns - START_NS) / 1_000_000n)
/** Each packet has a unique time and unique bytes. */
const packet = (i: number) => makePacket(at(i), `packet ${i}`, PACKET_BYTES)

test('a full store makes room, and every answer is right or openly cut', async (t) => {
  const mounted = await mountSmallDisk(STORE_MIB * MEBIBYTE)
  if (typeof mounted === 'string') {
    t.skip(mounted)
    return
  }
  await using disk = mounted
  await fillAndRead(t, disk.path, join(disk.beside, 'next.pcap'))
})

interface Progress {
  /** Packets that are in the store, or were. */
  imported: number
  isDone: boolean
}

interface Answers {
  complete: number
  cut: number
  trimmed: number
}

async function fillAndRead(t: TestContext, mount: string, file: string): Promise<void> {
  await using appliance = await startTempAppliance({
    storePath: join(mount, 'store'),
    segmentBytes: SEGMENT_BYTES,
    retention: { maxBytes: 0, minFreeBytes: FREE_MIB * MEBIBYTE, maxAgeMs: 0, onFull: 'roll', pinMs: 200 },
  })
  const recorder = new RecorderClient(appliance.storePath)
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  const progress: Progress = { imported: 0, isDone: false }
  const answers: Answers = { complete: 0, cut: 0, trimmed: 0 }
  const readers = [0, 1].map(() => readUntilDone(appliance, { progress, answers, random }))
  const captures = Math.ceil((ROUNDS * STORE_MIB * MEBIBYTE) / (PACKETS_PER_CAPTURE * RECORD_BYTES))
  try {
    for (let k = 0; k < captures; k++) {
      const numbers = Array.from({ length: PACKETS_PER_CAPTURE }, (_, i) => progress.imported + i)
      await writeFile(file, makePcap(numbers.map(packet)))
      await recorder.importCapture({ name: `capture-${k}`, files: [file], mayEvict: true })
      progress.imported += PACKETS_PER_CAPTURE
    }
  } finally {
    progress.isDone = true
    await Promise.all(readers)
  }
  t.diagnostic(`${captures} captures; answers: ${JSON.stringify(answers)}`)
  assert.ok(answers.complete > 0 && answers.trimmed > 0)
}

interface ReadOptions {
  readonly progress: Readonly<Progress>
  readonly answers: Answers
  readonly random: SeededRandom
}

async function readUntilDone(
  appliance: TempAppliance,
  { progress, answers, random }: ReadOptions,
): Promise<void> {
  while (!progress.isDone) {
    const { imported } = progress
    using opened = await appliance.open(`/api/v1/pcap/timerange?TSBegin=${START_NS}&TSEnd=${at(1_000_000)}`)
    const { response } = opened
    const pieces: Buffer[] = []
    let isCut = false
    try {
      for await (const piece of response) {
        pieces.push(piece as Buffer)
        // Occasionally a slow reader: segments are removed while it reads.
        if (random.next() < 0.02) await pause(20, 'a slow reader')
      }
    } catch {
      isCut = true
    }
    const body = Buffer.concat(pieces)
    assert.equal(response.statusCode, 200, body.toString('utf8', 0, 500))
    const got = checkRecords(body.subarray(24), isCut)
    const before = response.headers['capfleet-aged-out-before']
    answers[isCut ? 'cut' : 'complete'] += 1
    if (before !== undefined) answers.trimmed += 1
    if (isCut) continue
    assert.equal(response.trailers['capfleet-complete'], '1')
    assert.ok(got.end >= imported, `got up to ${got.end}, ${imported} were there before the request`)
    const first = before === undefined ? 0 : numberOf(BigInt(String(before)) - 1n) + 1
    if (got.end > 0) assert.equal(got.first, first, 'the header says from when on it is whole')
  }
}

/** Checks that every record is the next packet, byte for byte; returns their numbers [first, end). */
function checkRecords(records: Buffer, isCut: boolean): { first: number; end: number } {
  const whole = Math.floor(records.length / RECORD_BYTES)
  if (!isCut) assert.equal(records.length, whole * RECORD_BYTES, 'whole records')
  if (whole === 0) return { first: 0, end: 0 }
  const ns = BigInt(records.readUInt32LE(0)) * 1_000_000_000n + BigInt(records.readUInt32LE(4))
  const first = numberOf(ns)
  for (let i = 0; i < whole; i++) {
    const record = records.subarray(i * RECORD_BYTES, (i + 1) * RECORD_BYTES)
    assert.ok(record.equals(makeRecord(packet(first + i))), `packet ${first + i} is there and itself`)
  }
  return { first, end: first + whole }
}

test('the check sees a packet that is missing', () => {
  const [a, b, c] = [7, 8, 9].map((i) => makeRecord(packet(i))) as [Buffer, Buffer, Buffer]
  assert.deepEqual(checkRecords(Buffer.concat([a, b, c]), false), { first: 7, end: 10 })
  assert.throws(() => checkRecords(Buffer.concat([a, c]), false))
})
