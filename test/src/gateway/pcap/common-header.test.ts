import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agreedHeader, commonHeader } from '../../../../src/gateway/pcap/common-header.ts'
import { PcapInput } from '../../../../src/gateway/pcap/pcap-input.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { formatPcapHeader } from '../../../../src/shared/pcap/pcap-header.ts'

const header = { linkType: 1, snaplen: 65_535, nanoseconds: true }

test('takes the largest snaplen', () => {
  const inputs = [96, 262_144, 65_535].map((snaplen, i) => ({
    name: `d${i}`,
    header: { ...header, snaplen },
  }))
  assert.deepEqual(commonHeader(inputs), { linkType: 1, snaplen: 262_144, nanoseconds: true })
})

test('refuses different link types and names the devices', () => {
  const inputs = [
    { name: 'rome', header },
    { name: 'oslo', header: { ...header, linkType: 113 } },
  ]
  assert.throws(
    () => commonHeader(inputs),
    (error) =>
      error instanceof CapfleetError &&
      error.code === 'mixed-link-type' &&
      /\(1 of rome; 113 of oslo\)/.test(error.message),
  )
})

test('refuses different FCS bits of one link type, which one header cannot express', () => {
  const inputs = [
    { name: 'rome', header },
    { name: 'oslo', header: { ...header, linkType: 0x2400_0001 } },
  ]
  assert.throws(
    () => commonHeader(inputs),
    (error) =>
      error instanceof CapfleetError && error.code === 'mixed-link-type' && /0x24000001/.test(error.message),
  )
})

test('has the finest resolution', () => {
  const inputs = [false, true, false].map((nanoseconds, i) => ({
    name: `d${i}`,
    header: { ...header, nanoseconds },
  }))
  assert.equal(commonHeader(inputs).nanoseconds, true)
  assert.equal(commonHeader(inputs.slice(0, 1)).nanoseconds, false)
})

const RECORD = Buffer.alloc(16)

async function input(name: string, linkType: number, packets: number): Promise<PcapInput> {
  async function* chunks(): AsyncGenerator<Buffer> {
    yield formatPcapHeader({ linkType, snaplen: 65_535, nanoseconds: true })
    for (let i = 0; i < packets; i += 1) yield RECORD
  }
  return PcapInput.open(name, chunks())
}

test('an input without packets does not decide about the link type', async () => {
  const inputs = [
    await input('empty', 1, 0),
    await input('cooked', 113, 2),
    await input('cooked too', 113, 1),
  ]
  assert.equal((await agreedHeader(inputs)).linkType, 113)
  assert.equal(inputs[1]?.hasRecord, true, 'what was read to find out is still there')
})

test('without any packet the first input decides', async () => {
  assert.equal((await agreedHeader([await input('a', 113, 0), await input('b', 1, 0)])).linkType, 113)
})

test('packets of different link types are refused', async () => {
  await assert.rejects(
    agreedHeader([await input('a', 113, 1), await input('b', 1, 1)]),
    /several link types \(113 of a; 1 of b\)/,
  )
})
