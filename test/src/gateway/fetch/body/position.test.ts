// Positions at which a body can be resumed, and the comparison of repeated bytes, against a plain reading of the same
// bytes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { continueFrom, Rest } from '../../../../../src/gateway/fetch/body/continue-from.ts'
import { firstTimeStep, type Position, PositionLog } from '../../../../../src/gateway/fetch/body/position.ts'
import { planDownload } from '../../../../../src/gateway/fleet/plan/plan.ts'
import { withinBounds } from '../../../../../src/gateway/fleet/plan/within-bounds.ts'
import { UNBOUNDED } from '../../../../../src/shared/base/caller.ts'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../../../src/shared/query/parse-query-string.ts'
import { fleetPcap } from '../../../../support/devices/fake-fleet.ts'
import { makePacket, makePcap } from '../../../../support/packets/packet-maker.ts'
import { readPcap } from '../../../../support/packets/pcap-records.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'

const RANDOM = seededRandom()
const TAIL_BYTES = 16_384
const PCAP = fleetPcap(0, 400)

function randomPieces(bytes: Buffer, mostBytes: number): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = RANDOM.integer(0, mostBytes)
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

const HEADER = PCAP.subarray(0, 24)
const MIB = 1_048_576

test(`the last bytes are those of the body, however it is cut (SEED=${RANDOM.seed})`, () => {
  for (const mostBytes of [7_000, 70_000, 200_000]) {
    const log = new PositionLog()
    let seen = Buffer.alloc(0)
    for (const piece of randomPieces(PCAP, mostBytes)) {
      log.add(piece)
      seen = Buffer.concat([seen, piece])
      const { last } = log.places(HEADER)
      assert.equal(last.hashedBytes, Math.min(seen.length, TAIL_BYTES))
      assert.equal(last.bytes, String(seen.length - last.hashedBytes))
      assert.equal(last.crc32, crc32(seen.subarray(Number(last.bytes))))
    }
  }
})

test('positions stay close together near the end, and few in all', () => {
  const log = new PositionLog()
  const piece = Buffer.alloc(MIB / 4)
  for (let number = 0; number < 4_000; number++) {
    if (log.isDue) log.mark(piece, { offset: 16, fromNs: null })
    log.add(piece)
  }
  const at = log.places(HEADER).positions.map(({ bytes }) => Number(bytes))
  assert.ok(at.length <= 64)
  assert.deepEqual(
    at,
    at.toSorted((a, b) => a - b),
  )
  for (const back of [0, 5, 20]) {
    const place = log.bytes - back * MIB
    const before = at.findLast((one) => one <= place) ?? 0
    assert.ok(place - before <= 2 * MIB, `${back} MiB before the end`)
  }
})

/** The body of `bytes`, whose last bytes before these places are known. */
function knownAt(places: readonly number[]): readonly Position[] {
  return places.map((end) => ({
    bytes: String(end - TAIL_BYTES),
    fromNs: null,
    hashedBytes: TAIL_BYTES,
    crc32: crc32(PCAP.subarray(end - TAIL_BYTES, end)),
  }))
}

test('a body is the same when the known bytes fit, and another one from the first changed byte among them', () => {
  const known = knownAt([100_000, 110_000, 150_000])
  const read = (body: Buffer, startBytes: number, bytes: number): Buffer => {
    const rest = new Rest({
      startBytes,
      headerBytes: startBytes === 0 ? 0 : HEADER.length,
      bytes,
      known,
      devices: ['d0'],
    })
    const again = startBytes === 0 ? body : Buffer.concat([HEADER, body.subarray(startBytes)])
    const missing = randomPieces(again, 9_000).map((piece) => rest.take(piece))
    rest.end()
    return Buffer.concat(missing)
  }
  for (const startBytes of [0, 30_000, 90_000, 149_000]) {
    for (const bytes of [startBytes, startBytes + 1, 149_999, PCAP.length]) {
      assert.ok(read(PCAP, startBytes, bytes).equals(PCAP.subarray(bytes)), `${startBytes}, ${bytes}`)
    }
  }
  for (const at of [83_616, 99_999, 133_616, 149_999]) {
    const damaged = Buffer.from(PCAP)
    damaged[at] = (damaged[at] ?? 0) ^ 1
    assert.throws(() => read(damaged, 0, 10), /have changed/, `byte ${at}`)
  }
  assert.throws(() => read(PCAP.subarray(0, 149_000), 0, 10), /have changed/, 'it ends too early')
  const tooFar = PCAP.length + 1
  assert.throws(() => read(PCAP, 0, tooFar), /Offset.*the whole file has/)
})

test('a repeated body that is not PCAP is reported with the fault of the device, until all that was delivered has come', () => {
  const rest = new Rest({ startBytes: 0, headerBytes: 0, bytes: 100, known: [], devices: ['d0'] })
  const fault = new CapfleetError('device-protocol', 'device d0 sent a record that claims 9 bytes too many')
  const told = rest.meaningOf(fault) as CapfleetError
  assert.deepEqual([told.code, told.details.members?.devices], ['aged-out', ['d0']])
  assert.ok(told.message.includes(fault.message), told.message)
  rest.take(PCAP.subarray(0, 100))
  assert.equal(rest.meaningOf(fault), fault)
})

test('one device is asked by bytes, several by time, from the last place before what is missing', () => {
  const query = parseDownloadQuery('timerange', parseQueryString('TSBegin=1&TSEnd=9&TSUnit=nanos'), {
    zone: 'UTC',
    nowNs: 0n,
  })
  const position = (bytes: number, fromNs: string | null) => ({
    bytes: String(bytes),
    fromNs,
    hashedBytes: 0,
    crc32: 0,
  })
  const positions = [position(24, '2'), position(500, null), position(900, '5')]
  const places = { header: HEADER.toString('hex'), positions, last: position(990, null), wholeBytes: '990' }
  const targets = (devices: readonly string[], bytes: number) =>
    continueFrom(planDownload(withinBounds(query, UNBOUNDED), devices, 9), { bytes, places }).plan.steps.map(
      ({ target }) => target,
    )
  assert.match(targets(['d0'], 899)[0] ?? '', /TSBegin=1&.*&After=500$/)
  assert.match(targets(['d0'], 900)[0] ?? '', /TSBegin=1&.*&After=900$/)
  assert.doesNotMatch(targets(['d0'], 23)[0] ?? '', /After/)
  for (const target of targets(['d0', 'd1'], 899)) assert.match(target, /TSBegin=2&(?!.*After)/)
  for (const target of targets(['d0', 'd1'], 901)) assert.match(target, /TSBegin=5&(?!.*After)/)
})

test('a time step parts the packets: all before it are earlier, none after it', () => {
  const times = [5n, 5n, 5n, 7n, 7n, 8n, 9n]
  const pcap = makePcap(times.map((ns, index) => makePacket(ns, `packet ${index}`, 60 + index)))
  const step = firstTimeStep(pcap.subarray(24), 'nsec')
  assert.equal(step?.ns, 7n)
  const at = 24 + (step?.offset ?? 0)
  const before = readPcap(pcap.subarray(0, at)).records.map(({ ns }) => ns)
  const behind = readPcap(Buffer.concat([HEADER, pcap.subarray(at)])).records.map(({ ns }) => ns)
  assert.deepEqual([before, behind], [times.slice(0, 3), times.slice(3)])
  const same = makePcap([5n, 5n].map((ns) => makePacket(ns, 'x', 60))).subarray(24)
  assert.equal(firstTimeStep(same, 'nsec'), undefined)
})
