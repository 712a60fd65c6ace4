import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isResumable, restOf } from '../../../../src/console/download/receipt-rest.ts'

const PATH = '/api/v1/pcap/timerange'
const receipt = (
  status: 'failed' | 'client-gone' | 'complete' | 'truncated',
  query: string,
  path = PATH,
) => ({
  status,
  path,
  query,
  nextNs: status === 'truncated' ? '1500' : null,
})

describe('the rest of a download', () => {
  test('is gone on with where it broke off, but never inside of what was compressed', () => {
    assert.ok(isResumable(receipt('failed', 'TSBegin=1&TSEnd=2')))
    assert.ok(isResumable(receipt('client-gone', 'TSBegin=1&TSEnd=2&Compression=none')))
    assert.ok(!isResumable(receipt('failed', 'TSBegin=1&TSEnd=2&Compression=zstd')))
    assert.ok(!isResumable(receipt('complete', 'TSBegin=1&TSEnd=2')))
  })

  test('that a limit left out is selected from its first packet on, with nothing of another selection', () => {
    const rest = restOf(receipt('truncated', 'Device=a&TSBegin=1&TSEnd=2000&TSUnit=nanos&MaxPackets=3'))
    assert.ok(rest)
    const { Device, TSBegin, TSEnd, MaxPackets, FilterBPF } = rest
    assert.deepEqual([Device, TSBegin, TSEnd, MaxPackets, FilterBPF], ['a', '1500', '2000', '3', undefined])
    assert.ok('FilterBPF' in rest, 'it is taken away')
    assert.equal(restOf(receipt('complete', 'TSBegin=1&TSEnd=2')), undefined)
    assert.equal(restOf(receipt('truncated', 'TSBegin=1&TSEnd=2', `/devices/a${PATH}`)), undefined)
  })
})
