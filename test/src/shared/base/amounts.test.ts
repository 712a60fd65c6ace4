import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  bitRateText,
  bytesText,
  countText,
  packetsText,
  percentText,
} from '../../../../src/shared/base/amounts.ts'

test('sizes have binary units and at most three digits, except just below the next unit', () => {
  assert.deepEqual([0, 999, 1_023, 1_024, 123_456, 5_250_000_000, '18446744073709551615'].map(bytesText), [
    '0 B',
    '999 B',
    '1023 B',
    '1.00 KiB',
    '121 KiB',
    '4.89 GiB',
    '16384 PiB',
  ])
})

test('rates of a network have decimal units', () => {
  assert.deepEqual([0, 999, 9_400_000_000].map(bitRateText), ['0 bit/s', '999 bit/s', '9.40 Gbit/s'])
})

test('counts are exact, and shares are percentages', () => {
  assert.deepEqual([0, 1_234, '12345678901234567890'].map(countText), [
    '0',
    '1,234',
    '12,345,678,901,234,567,890',
  ])
  assert.deepEqual([0, 0.0123, 0.5, 1].map(percentText), ['0 %', '1.2 %', '50 %', '100 %'])
})

test('one packet is not several', () => {
  assert.deepEqual([0, '1', 1n, 1_234].map(packetsText), [
    '0 packets',
    '1 packet',
    '1 packet',
    '1,234 packets',
  ])
})
