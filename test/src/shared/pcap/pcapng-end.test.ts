/** Whether a pcapng file is whole: only its last block says so. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  interfaceDescription,
  interfaceStatistics,
  PcapngOption,
  sectionHeader,
  textOption,
} from '../../../../src/shared/pcap/pcapng-blocks.ts'
import { PCAPNG_END, PcapngEnd } from '../../../../src/shared/pcap/pcapng-end.ts'
import { makePacket } from '../../../support/packets/packet-maker.ts'
import { makePcapng } from '../../../support/packets/pcapng-maker.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const comment = (text: string) => textOption(PcapngOption.comment, text)
const statistics = (...comments: string[]) =>
  interfaceStatistics({ interfaceNumber: 0, atNs: 7n }, comments.map(comment))
const HEAD = Buffer.concat([
  sectionHeader([comment(`${PCAPNG_END}in a query`)]),
  interfaceDescription({ linkType: 1, snaplen: 65_535 }, []),
])
const FAKE = statistics(`${PCAPNG_END}9 packets, complete`)
/** A packet that contains a whole block of an end. */
const PACKET = makePcapng(0, [
  { ...makePacket(5n, ''), captured: FAKE, originalLength: FAKE.length, port: 0 },
]).subarray(makePcapng(0, []).length)
const END = statistics(`${PCAPNG_END}1 packets, complete`, 'capfleet drops: some')
const WHOLE = Buffer.concat([HEAD, PACKET, statistics('of another interface'), END])

function commentsOf(bytes: Uint8Array, pieces: readonly number[] = []): readonly string[] | undefined {
  const end = new PcapngEnd('a.pcapng')
  let from = 0
  for (const piece of [...pieces, bytes.length]) {
    end.feed(bytes.subarray(from, piece))
    from = piece
  }
  return end.comments
}

test(`the last block says so, however the bytes arrive (SEED=${seededRandom().seed})`, () => {
  const random = seededRandom()
  const says = ['1 packets, complete', 'capfleet drops: some']
  assert.deepEqual(commentsOf(WHOLE), says)
  for (let turn = 0; turn < 50; turn++) {
    const pieces = Array.from({ length: 5 }, () => random.integer(0, WHOLE.length)).sort((a, b) => a - b)
    assert.deepEqual(commentsOf(WHOLE, pieces), says)
  }
})

test('no cut file looks whole: neither a query, a packet nor another block counts', () => {
  for (let bytes = 0; bytes < WHOLE.length; bytes++)
    assert.equal(commentsOf(WHOLE.subarray(0, bytes)), undefined, `${bytes} bytes`)
  assert.equal(commentsOf(Buffer.concat([WHOLE, PACKET])), undefined)
  assert.equal(commentsOf(Buffer.concat([HEAD, statistics('first', `${PCAPNG_END}second`)])), undefined)
})

test('what is not such a file is refused with the place', () => {
  const refused = (bytes: Uint8Array, message: RegExp) =>
    assert.throws(() => commentsOf(bytes), { code: 'device-protocol', message })
  refused(Buffer.from('no capture file'), /^a\.pcapng is not a pcapng file of one section, at byte 0$/)
  refused(Buffer.concat([WHOLE, WHOLE]), new RegExp(`of one section, at byte ${WHOLE.length}$`))
  const otherOrder = Buffer.from(WHOLE)
  otherOrder.writeUInt32BE(0x1a2b3c4d, 8)
  refused(otherOrder, /not a little-endian pcapng file/)
  for (const length of [0, 12, 29, 2 ** 31]) {
    const bad = Buffer.from(WHOLE)
    bad.writeUInt32LE(length, HEAD.length + 4)
    refused(bad, new RegExp(`has a block of ${length} bytes, at byte ${HEAD.length}$`))
  }
  const twoLengths = Buffer.from(WHOLE)
  twoLengths.writeUInt32LE(FAKE.length, HEAD.length + PACKET.length - 4)
  refused(twoLengths, /has a block with two lengths/)
})
