import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InternetChecksum } from '../../../../src/demo/traffic/internet-checksum.ts'

test('gives the example of RFC 1071', () => {
  const bytes = Buffer.from('0001f203f4f5f6f7', 'hex')
  assert.equal(new InternetChecksum().add(bytes).value, ~0xddf2 & 0xffff)
})

test('counts an odd last byte as the high one, and words like bytes', () => {
  assert.equal(new InternetChecksum().add(Buffer.from([0x12])).value, ~0x1200 & 0xffff)
  assert.equal(
    new InternetChecksum().addWord(0x1234).value,
    new InternetChecksum().add(Buffer.from([0x12, 0x34])).value,
  )
})

test('carries out of large sums are added back', () => {
  const ones = Buffer.alloc(262_144, 0xff)
  assert.equal(new InternetChecksum().add(ones).value, 0)
})
