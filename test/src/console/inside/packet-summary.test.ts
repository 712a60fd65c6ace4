import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { summaryOf } from '../../../../src/console/inside/packet-summary.ts'
import { firstOfAll, hexLines, readPackets } from '../../../../src/console/inside/pcap-packets.ts'
import { makePacket, makePcap } from '../../../support/packets/packet-maker.ts'

const ETHERNET = '020000000002020000000001'
const V4 = `4500001c00000000401100000a0000010a000002`
const V6 = `6000000000081140${'20010db8000000000000000000000001'}${'fe800000000000000000000000000002'}`

function summary(hex: string, linkType = 1) {
  const bytes = new Uint8Array(Buffer.from(hex, 'hex'))
  return summaryOf({ ns: 0n, device: 'a', bytes, length: bytes.length, linkType })
}

describe('the summary of a packet', () => {
  test('has addresses and ports, after tags too', () => {
    const udp = { source: '10.0.0.1:53', destination: '10.0.0.2:4096', protocol: 'UDP' }
    assert.deepEqual(summary(`${ETHERNET}0800${V4}0035100000080000`), udp)
    assert.deepEqual(summary(`${ETHERNET}8100000a0800${V4}0035100000080000`), udp)
    assert.deepEqual(summary(`${V4}0035100000080000`, 101), udp)
    assert.deepEqual(summary(`${ETHERNET}86dd${V6}003510000008`), {
      source: '[2001:db8::1]:53',
      destination: '[fe80::2]:4096',
      protocol: 'UDP',
    })
  })

  test('names what has no address of IP, and what is cut or not known', () => {
    assert.deepEqual(summary(`${ETHERNET}0806`), {
      source: '02:00:00:00:00:01',
      destination: '02:00:00:00:00:02',
      protocol: 'ARP',
    })
    assert.equal(summary(`${ETHERNET}0800${V4.slice(0, 20)}`).protocol, 'truncated')
    assert.equal(summary('00', 147).protocol, 'link type 147')
  })
})

describe('the packets of a file', () => {
  test('come with their times, and without a last one that is cut', () => {
    const file = makePcap([makePacket(5n, 'one', 80), makePacket(1_000_000_007n, 'two', 90)])
    const packets = readPackets(file.subarray(0, -1), 'a')
    assert.deepEqual(
      packets.map(({ ns, length }) => [ns, length]),
      [[5n, 80]],
    )
    assert.equal(readPackets(file, 'a').at(-1)?.ns, 1_000_000_007n)
    assert.deepEqual(readPackets(new Uint8Array(), 'a'), [])
  })

  test('of several devices come in the order of time, at the same time in that of the devices', () => {
    const lists = ['a', 'b'].map((device) =>
      readPackets(makePcap([makePacket(1n, 'x', 60), makePacket(9n, 'y', 60)]), device),
    )
    assert.deepEqual(
      firstOfAll(lists, 3).map(({ ns, device }) => `${ns}${device}`),
      ['1a', '1b', '9a'],
    )
  })

  test('are shown as hexadecimal and as text', () => {
    assert.deepEqual(hexLines(Uint8Array.from([0, 65, 255])), [`0000  00 41 ff${' '.repeat(41)} .A.`])
  })
})
