import assert from 'node:assert/strict'
import { BlockList, isIP } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  ADDRESSES_MAX,
  addressCount,
  addressListType,
  packAddressList,
} from '../../../../../src/shared/query/filter/address-list.ts'

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
const read = (text: string): string => addressListType().read(text, 'FilterAddresses', {}) ?? ''

test('a list is sorted, without comments, duplicates and what a network covers', () => {
  assert.equal(read('10.0.0.2,10.0.0.1 10.0.0.2\t; 9.255.255.255'), '9.255.255.255,10.0.0.1,10.0.0.2')
  assert.equal(read('# hosts of lon1\n10.0.0.1 # the printer, 10.0.0.9\r\n\r\n10.0.0.0/30\n'), '10.0.0.0/30')
  assert.equal(read('10.0.0.4/32 10.0.0.0/8 10.1.0.0/16 11.0.0.0'), '10.0.0.0/8,11.0.0.0')
  assert.equal(read('2001:DB8:0:0:0::1 ::/1 2001:db8::/32 fe80::1'), '::/1,fe80::1')
  assert.equal(read('2001:db8::1 0.0.0.0/0 1.2.3.4'), '0.0.0.0/0,2001:db8::1')
  assert.equal(
    read('::fffe:10.0.0.1,1:0:0:2:0:0:0:3,1:0:2:3:4:5:6:7,::'),
    '::,::fffe:a00:1,1:0:0:2::3,1:0:2:3:4:5:6:7',
  )
  assert.equal(read('::/0'), '::/0')
})

test('IPv4 addresses in the form of IPv6 sockets are IPv4 addresses', () => {
  assert.equal(read('::ffff:10.0.0.1 ::FFFF:c0a8:0/112 ::/90'), '10.0.0.1,192.168.0.0/16,::/90')
  assert.equal(read('::ffff:0:0/96'), '0.0.0.0/0')
  assert.equal(read('::ffff:10.0.0.1,10.0.0.1'), '10.0.0.1')
})

test('the canonical text is read as itself, and has the addresses that were given', () => {
  const networks = fc.oneof(
    fc.ipV4().map((address) => `${address}/32`),
    fc.ipV6().map((address) => `${address}/128`),
  )
  fc.assert(
    fc.property(
      fc.array(networks, { minLength: 1, maxLength: 20 }),
      fc.ipV4(),
      fc.ipV6(),
      (list, four, six) => {
        const text = read(list.join(', '))
        assert.equal(read(text), text)
        const oracle = new BlockList()
        const given = new BlockList()
        for (const [target, entries] of [
          [given, list],
          [oracle, text.split(',')],
        ] as const)
          for (const entry of entries) {
            const [address = '', prefix] = entry.split('/')
            const bits = isIP(address) === 4 ? 32 : 128
            target.addSubnet(address, Number(prefix ?? bits), isIP(address) === 4 ? 'ipv4' : 'ipv6')
          }
        for (const address of [four, six, ...list.map((entry) => entry.split('/')[0] ?? '')]) {
          const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
          assert.equal(oracle.check(address, family), given.check(address, family), address)
        }
      },
    ),
    { seed: SEED },
  )
})

const BROKEN: readonly [string, RegExp][] = [
  ['', /has no address; add one, such as 10.1.2.3/],
  [' , ;\n# only a comment', /has no address/],
  ['10.0.0', /"10.0.0" is no IPv4 or IPv6 address or network/],
  ['10.0.0.256', /"10.0.0.256" is no IPv4/],
  ['010.0.0.1', /"010.0.0.1" is no IPv4/],
  ['10.0.0.1/33', /"10.0.0.1\/33" is no IPv4/],
  ['10.0.0.1/', /is no IPv4/],
  ['10.0.0.1/8/8', /is no IPv4/],
  ['10.0.0.1-10.0.0.9', /is no IPv4/],
  ['host.example', /"host.example" is no IPv4/],
  ['fe80::1%eth0', /is no IPv4/],
  ['1::2::3', /is no IPv4/],
  ['1:2:3:4:5:6:7', /is no IPv4/],
  ['1::2:10.0.0.1:3', /is no IPv4/],
  ['1:10.0.0.1::2', /is no IPv4/],
  ['1::2:', /is no IPv4/],
  [':1::2', /is no IPv4/],
  [':::', /is no IPv4/],
  ['1:2:3:4:5:6:7:8:9', /is no IPv4/],
  ['12345::', /is no IPv4/],
  [
    '10.0.0.5/24',
    /"10.0.0.5\/24" has bits after its prefix: write 10.0.0.0\/24 for the network, or 10.0.0.5/,
  ],
  ['2001:db8::5/64', /write 2001:db8::\/64 for the network/],
  ['10.1.2.3:443', /"10.1.2.3:443" is no IPv4 .*; write it without the port$/],
  ['10.1.2.0/255.255.255.0', /; write the mask as \/24$/],
  ['10.1.2.0/0.0.0.255', /; write a prefix length for the mask$/],
  ['10.0.0.1\n\n10.0.0.256 # a comment\n', /^FilterAddresses line 3: "10.0.0.256" is no IPv4/],
  ['10.0.0.1\r\n10.0.0.1/8\r\n', /^FilterAddresses line 2: "10.0.0.1\/8" has bits after its prefix/],
  [different(ADDRESSES_MAX + 1), /has 10001 different entries, but at most 10000 are possible/],
]

function different(count: number): string {
  return Array.from({ length: count }, (_, index) => `10.${index >> 8}.${index & 255}.1`).join('\n')
}

for (const [text, message] of BROKEN) {
  test(`${JSON.stringify(text.slice(0, 40))} is refused`, () => {
    assert.throws(() => read(text), { code: 'bad-parameter', message })
  })
}

test('"::" may stand for one group', () => {
  assert.equal(read('1:2:3:4:5:6:7::'), '1:2:3:4:5:6:7:0')
})

test('10,000 entries are taken, and counted', () => {
  assert.equal(addressCount(read(different(ADDRESSES_MAX))), ADDRESSES_MAX)
  assert.equal(addressCount(read('10.0.0.1\n'.repeat(ADDRESSES_MAX + 1))), 1)
  assert.equal(addressCount('10.0.0.1 # one\n10.0.0.2'), 2)
})

test('the engine gets ranges in network order', () => {
  const bytes = packAddressList('10.0.0.0/30,192.168.0.1,2001:db8::/127')
  assert.equal(
    Buffer.from(bytes).toString('hex'),
    '02000000' + // two ranges of IPv4
      '0a0000000a000003' +
      'c0a80001c0a80001' +
      '20010db8000000000000000000000000' +
      '20010db8000000000000000000000001',
  )
})
