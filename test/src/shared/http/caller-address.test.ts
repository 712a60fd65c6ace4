import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { addressOf, TrustedProxies } from '../../../../src/shared/http/caller-address.ts'

for (const [remoteAddress, address] of [
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  [undefined, ''],
] as const) {
  test(`a caller from ${remoteAddress} counts as ${address || 'unknown'}`, () => {
    assert.equal(addressOf({ remoteAddress }), address)
  })
}

const PROXIES = new TrustedProxies(['10.0.0.0/8', '2001:db8:ffff::/48'])

for (const [what, from, told, address] of [
  ['a stranger is whom the connection comes from', '192.0.2.7', '198.51.100.1', '192.0.2.7'],
  ['a proxy speaks for its client', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['a proxy of IPv6 too', '2001:db8:ffff::1', '2001:db8:1:2::6', '2001:db8:1:2::/64'],
  ['a row of proxies is followed to its start', '10.0.0.1', '198.51.100.1, 10.0.0.2', '198.51.100.1'],
  ['what a client claims itself counts for nothing', '10.0.0.1', '10.9.9.9, 203.0.113.5', '203.0.113.5'],
  ['an IPv4 address of a proxy may be written as IPv6', '::ffff:10.0.0.1', '198.51.100.1', '198.51.100.1'],
  ['ports are left out', '10.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
  ['ports are left out of IPv6', '10.0.0.1', '[2001:db8:1:2::6]:4711', '2001:db8:1:2::/64'],
  ['what is no address ends the row', '10.0.0.1', '198.51.100.1, unknown', '10.0.0.1'],
  ['a proxy that tells nothing speaks for itself', '10.0.0.1', undefined, '10.0.0.1'],
  ['a row of nothing but proxies begins with a proxy', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
] as const) {
  test(what, () => {
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: from })
    const request = new IncomingMessage(socket)
    if (told !== undefined) request.headers['x-forwarded-for'] = told
    assert.equal(PROXIES.callerOf(request), address)
  })
}
