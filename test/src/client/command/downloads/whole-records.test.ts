import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WholeRecords } from '../../../../../src/client/command/downloads/whole-records.ts'
import { makePacket, makePcap } from '../../../../support/packets/packet-maker.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'

const RANDOM = seededRandom()
const PACKETS = Array.from({ length: 40 }, (_, index) =>
  makePacket(BigInt(index), `packet ${index}`, 60 + index * 7),
)
const FILE = makePcap(PACKETS)

/** Offsets at which a whole file may end. */
const ENDS = PACKETS.map((_, index) => makePcap(PACKETS.slice(0, index)).length)

test(`however the bytes arrive, the output is a whole file at any time (SEED=${RANDOM.seed})`, () => {
  for (let round = 0; round < 200; round += 1) {
    const records = new WholeRecords()
    let given = Buffer.alloc(0)
    for (let at = 0; at < FILE.length; ) {
      const size = RANDOM.integer(1, round < 100 ? 30 : 1_000)
      given = Buffer.concat([given, ...records.take(FILE.subarray(at, at + size))])
      at += size
      assert.ok(
        given.length === 0 || given.length === FILE.length || ENDS.includes(given.length),
        String(given.length),
      )
      assert.ok(at - given.length < 1_000 + 400)
    }
    assert.ok(given.equals(FILE) && records.isWhole)
  }
})

for (const isBigEndian of [false, true])
  test(`the rest of a ${isBigEndian ? 'big' : 'little'}-endian file begins with a record`, () => {
    const file = makePcap(PACKETS, { isBigEndian })
    const [from = 0] = ENDS.slice(7)
    const begin = new WholeRecords()
    begin.take(file.subarray(0, from))
    assert.deepEqual(begin.form, { isBigEndian })
    const records = new WholeRecords(begin.form)
    assert.deepEqual(records.take(file.subarray(from, from + 50)), [], 'less than a record')
    const given = records.take(file.subarray(from + 50))
    assert.ok(Buffer.concat(given).equals(file.subarray(from)))
    assert.ok(records.isWhole)
  })

test('the bytes that mark a cut are held back', () => {
  const records = new WholeRecords()
  const given = [...records.take(FILE), ...records.take(new Uint8Array(8))]
  assert.ok(Buffer.concat(given).equals(FILE))
  assert.equal(records.isWhole, false)
})
