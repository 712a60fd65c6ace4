import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ipProtocolName, ipProtocolNumber } from '../../../../../src/shared/query/flow/ip-protocols.ts'

test('knows protocols by the names of Suricata and Zeek, in any case, and by number', () => {
  for (const [text, number] of [
    ['TCP', 6],
    ['udp', 17],
    ['ICMP', 1],
    ['IPv6-ICMP', 58],
    ['icmp6', 58],
    ['GRE', 47],
    ['SCTP', 132],
    ['HOPOPT', 0],
    ['IP-in-IP', 4],
    ['IPv6', 41],
    ['EIGRP', 88],
    ['OSPF', 89],
    ['VRRP', 112],
    ['UDPLite', 136],
    ['Ethernet', 143],
    ['003', 3],
    ['255', 255],
  ] as const)
    assert.equal(ipProtocolNumber(text), number, text)
})

test('knows no other texts', () => {
  for (const text of ['', '-', '256', '-1', '6.0', 'Any', 'http', 'toString', 'unknown_transport'])
    assert.equal(ipProtocolNumber(text), undefined, text)
})

test('each number has a name that is read as that number', () => {
  for (let number = 0; number < 256; number += 1) {
    const name = ipProtocolName(number)
    assert.match(name, /^[a-z0-9.+-]+$/)
    if (number !== 107) assert.equal(ipProtocolNumber(name), number, name)
  }
})
