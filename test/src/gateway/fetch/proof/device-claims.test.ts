import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  claimsOfMerge,
  endOfMerge,
  readClaims,
  readEnd,
  statusOfEnd,
} from '../../../../../src/gateway/fetch/proof/device-claims.ts'

test('reads whole numbers only: what is malformed was not said', () => {
  const trailers = {
    'capfleet-complete': '1',
    'capfleet-packets': '7',
    'capfleet-late-packets': 'many',
    'capfleet-truncated': '1',
    'capfleet-next-ns': '1700000000000000001',
    'x-other': '5',
  }
  assert.deepEqual(readEnd(trailers), {
    packets: 7n,
    corruptBlocks: undefined,
    timeFallbacks: undefined,
    latePackets: undefined,
    duplicates: undefined,
    isTruncated: true,
    nextNs: 1700000000000000001n,
    isUnverified: false,
  })
  const headers = {
    'capfleet-order': 'Time; rm',
    'capfleet-time-zone': 'Asia/Tokyo\nX: y',
    'capfleet-aged-out-before': '-5',
    'capfleet-damaged-segments': '3',
  }
  assert.deepEqual(readClaims(headers), {
    fileName: undefined,
    order: undefined,
    timeZone: undefined,
    agedOutBeforeNs: undefined,
    damagedSegments: 3n,
  })
})

test('a zone is the name of one', () => {
  assert.equal(
    readClaims({ 'capfleet-time-zone': 'America/Port-au-Prince' }).timeZone,
    'America/Port-au-Prince',
  )
})

test('a file name is one that no shell and no browser misinterprets', () => {
  const named = (value: string) => readClaims({ 'content-disposition': value }).fileName
  assert.equal(named('attachment; filename="day_20261123_0900.pcap.gz"'), 'day_20261123_0900.pcap.gz')
  for (const value of ['attachment; filename="../x"', 'attachment; filename="a\\"; x="b"', 'inline']) {
    assert.equal(named(value), undefined)
  }
})

test('counts of several devices add up', () => {
  const ends = [
    readEnd({ 'capfleet-ts-fallbacks': '2', 'capfleet-late-packets': '1' }),
    readEnd({ 'capfleet-ts-fallbacks': '9007199254740993' }),
  ]
  assert.deepEqual(endOfMerge(ends, { packets: 5n, nextNs: undefined, latePackets: 0n, duplicates: 4n }), {
    packets: 5n,
    corruptBlocks: 0n,
    timeFallbacks: 9007199254740995n,
    latePackets: 1n,
    duplicates: 4n,
    isTruncated: false,
    nextNs: undefined,
    isUnverified: false,
  })
})

test('a device that does not know whether it has everything makes all unverified', () => {
  const ends = [readEnd({ 'capfleet-complete': '1' }), readEnd({ 'capfleet-status': 'unverified' })]
  assert.deepEqual(ends.map(statusOfEnd), ['complete', 'unverified'])
  assert.equal(
    endOfMerge(ends, { packets: 5n, nextNs: undefined, latePackets: 0n, duplicates: undefined }).isUnverified,
    true,
  )
})

test('the merge’s own end comes before that of a device, and a device’s own when it alone was cut', () => {
  const cut = [{ 'capfleet-next-ns': '20' }, { 'capfleet-next-ns': '9' }, {}].map(readEnd)
  assert.equal(
    endOfMerge(cut, { packets: 0n, nextNs: 5n, latePackets: 0n, duplicates: undefined }).nextNs,
    5n,
  )
  assert.equal(
    endOfMerge(cut, { packets: 0n, nextNs: undefined, latePackets: 0n, duplicates: undefined }).nextNs,
    9n,
  )
  assert.equal(
    endOfMerge(cut, { packets: 0n, nextNs: undefined, latePackets: 0n, duplicates: undefined }).isTruncated,
    true,
  )
})

test('of a merge nothing is missing since the latest time that a device names', () => {
  const claims = [
    { 'capfleet-aged-out-before': '7', 'capfleet-order': 'time' },
    { 'capfleet-aged-out-before': '19' },
    {},
  ]
  assert.equal(claimsOfMerge(claims.map(readClaims)).agedOutBeforeNs, 19n)
  assert.equal(claimsOfMerge([readClaims({})]).agedOutBeforeNs, undefined)
})
