import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mergedTrailers, passedTrailers } from '../../../src/download/passed-trailers.ts'

test('passes whole numbers of known trailers only', () => {
  const trailers = {
    'capfleet-complete': '1',
    'capfleet-packets': '7',
    'capfleet-late-packets': 'many',
    'capfleet-truncated': '1',
    'capfleet-next-ns': '1700000000000000001',
    'x-other': '5',
  }
  assert.deepEqual(passedTrailers(trailers), {
    'Capfleet-Packets': '7',
    'Capfleet-Truncated': '1',
    'Capfleet-Next-Ns': '1700000000000000001',
  })
})

test('counts of several devices add up', () => {
  const merged = mergedTrailers(
    [
      { 'capfleet-ts-fallbacks': '2', 'capfleet-late-packets': '1' },
      { 'capfleet-ts-fallbacks': '9007199254740993' },
    ],
    { nextNs: undefined },
  )
  assert.deepEqual(merged, {
    'Capfleet-Corrupt-Blocks': '0',
    'Capfleet-TS-Fallbacks': '9007199254740995',
    'Capfleet-Late-Packets': '1',
    'Capfleet-Truncated': '0',
  })
})

test('the merge’s own end comes before that of a device, and a device’s own when it alone was cut', () => {
  const cut = [{ 'capfleet-next-ns': '20' }, { 'capfleet-next-ns': '9' }, {}]
  assert.equal(mergedTrailers(cut, { nextNs: 5n })['Capfleet-Next-Ns'], '5')
  assert.equal(mergedTrailers(cut, { nextNs: undefined })['Capfleet-Next-Ns'], '9')
  assert.equal(mergedTrailers(cut, { nextNs: undefined })['Capfleet-Truncated'], '1')
})
