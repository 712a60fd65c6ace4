import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { formatPcapHeader, parsePcapHeader } from '../../../../src/shared/pcap/pcap-header.ts'
import { makePcap } from '../../../support/packets/packet-maker.ts'

test('reads link type word, snaplen and resolution', () => {
  const bytes = makePcap([], { linkType: 0x2400_0001, snaplen: 65_535 })
  const expected = { linkType: 0x2400_0001, snaplen: 65_535, nanoseconds: true, isBigEndian: false }
  assert.deepEqual(parsePcapHeader(bytes), expected)
  assert.equal(parsePcapHeader(makePcap([], { nanoseconds: false })).nanoseconds, false)
})

test('writes the header that it reads', () => {
  for (const nanoseconds of [true, false]) {
    for (const isBigEndian of [true, false]) {
      const options = { linkType: 0xffff_fff0, snaplen: 0xff, nanoseconds, isBigEndian }
      assert.deepEqual(formatPcapHeader(options), makePcap([], options))
      assert.deepEqual(parsePcapHeader(formatPcapHeader(options)), options)
    }
    const header = { linkType: 1, snaplen: 65_535, nanoseconds }
    assert.deepEqual(formatPcapHeader(header), makePcap([], header), 'little-endian where nothing is said')
  }
})

test('reads a header that lies inside a larger buffer', () => {
  const inside = Buffer.concat([Buffer.alloc(7, 0xff), makePcap([], { snaplen: 1234 })]).subarray(7)
  assert.equal(parsePcapHeader(inside).snaplen, 1234)
})

test('refuses other bytes and shows them', () => {
  const page = Buffer.from('<!doctype html><html lang=en>')
  assert.throws(() => parsePcapHeader(page, 'paris'), refusal(/^paris does not begin .*0x3c21646f/))
})

test('refuses a short header and an unknown version', () => {
  assert.throws(() => parsePcapHeader(makePcap([]).subarray(0, 23), 'paris'), refusal(/after 23 bytes/))
  const future = makePcap([])
  future.writeUInt16LE(3, 4)
  assert.throws(() => parsePcapHeader(future, 'paris'), refusal(/version 3/))
})

function refusal(message: RegExp) {
  return (error: unknown) =>
    error instanceof CapfleetError && error.code === 'device-protocol' && message.test(error.message)
}
