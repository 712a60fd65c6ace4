import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AddressRule } from '../../../../../src/gateway/fleet/roster/address-rule.ts'

const REFUSED = [
  '127.0.0.1',
  '127.255.255.254',
  '0.0.0.0',
  '169.254.169.254',
  '100.100.100.200',
  '168.63.129.16',
  '::ffff:168.63.129.16',
  '192.0.0.192',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:a9fe:a9fe',
  '0:0:0:0:0:ffff:169.254.169.254',
  '64:ff9b::169.254.169.254',
  '::ffff:0:169.254.169.254',
  '::ffff:0:10.0.0.1',
  '2002:7f00:1::',
  '2001::1',
  'fe80::1',
  'fe80::1%eth0',
  'ff02::1',
  'fd00:ec2::254',
  'localhost',
  '2130706433',
  '0x7f.1',
  '017700000001',
  '',
]

const ALLOWED = [
  '10.0.0.1',
  '192.168.7.9',
  '192.0.2.1',
  '100.100.100.201',
  '168.63.129.17',
  '2001:db8::1',
  'fd00::1',
  '::ffff:10.0.0.1',
]

test('refuses loopback, link-local, metadata and translated addresses in every spelling', () => {
  const rule = new AddressRule([])
  assert.deepEqual(
    REFUSED.filter((address) => rule.allows(address)),
    [],
  )
  assert.deepEqual(
    ALLOWED.filter((address) => !rule.allows(address)),
    [],
  )
})

test('a network that the configuration allows is allowed, its neighbours are not', () => {
  const rule = new AddressRule(['127.0.0.0/30', 'fe80::/64'])
  assert.deepEqual(
    ['127.0.0.1', '127.0.0.4', '::ffff:127.0.0.2', 'fe80::1', 'fe80:0:0:1::1', '169.254.169.254'].map(
      (address) => rule.allows(address),
    ),
    [true, false, true, true, false, false],
  )
})
