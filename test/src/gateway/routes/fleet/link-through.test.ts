import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linkThrough } from '../../../../../src/gateway/routes/fleet/link-through.ts'

test('a link of a device points to that device', () => {
  for (const [link, through] of [
    ['/pcap/splittime?StreamName=a&Start=1ULL&Stop=2ULL&&', undefined],
    ['/pcap/single?StreamName=my cap', '/pcap/single?StreamName=my%20cap'],
    ['/pcap/single?StreamName=Größe', '/pcap/single?StreamName=Gr%C3%B6%C3%9Fe'],
    ['/pcap/single?StreamName=../../x', undefined],
    ['/../../../v1/tokens', '/v1/tokens'],
    ['/pcap/%2e%2e/%2E./other', '/other'],
    ['/\\..\\..\\other/pcap/del', '/other/pcap/del'],
    ['//elsewhere/x', undefined],
  ] as const)
    assert.equal(linkThrough('lon1', link), `/devices/lon1${through ?? link}`)
})

test('anything but a link of a device is refused', () => {
  for (const link of ['http://elsewhere/', 'pcap/single', '', 7, null, undefined, {}])
    assert.equal(linkThrough('lon1', link), undefined)
})
