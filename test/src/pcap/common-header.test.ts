import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../src/base/error.ts'
import { commonHeader } from '../../../src/pcap/common-header.ts'

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
      /rome 1, oslo 113/.test(error.message),
  )
})

test('refuses different FCS bits of one link type, which one header cannot tell', () => {
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

test('refuses different resolutions and names the devices', () => {
  const inputs = [
    { name: 'rome', header },
    { name: 'oslo', header: { ...header, nanoseconds: false } },
  ]
  assert.throws(
    () => commonHeader(inputs),
    (error) =>
      error instanceof CapfleetError &&
      error.code === 'device-protocol' &&
      /rome nsec, oslo usec/.test(error.message),
  )
})
