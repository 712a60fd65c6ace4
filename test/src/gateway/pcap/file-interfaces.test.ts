// What devices and earlier files say of interfaces.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FileInterfaces } from '../../../../src/gateway/pcap/file-interfaces.ts'
import {
  IN_NANOSECONDS,
  interfaceDescription,
  interfaceStatistics,
  optionBytes,
  PcapngOption,
  textOption,
} from '../../../../src/shared/pcap/pcapng-blocks.ts'

const ETHERNET = { linkType: 1, snaplen: 65_535 }
const open = () => new FileInterfaces({ devices: ['d'], siteOf: () => undefined, filterBpf: undefined })

test('what two streams say of one interface is kept, once', () => {
  const interfaces = open()
  const described = interfaceDescription(ETHERNET, [
    textOption(PcapngOption.interfaceName, 'd:cap0'),
    IN_NANOSECONDS,
  ])
  const said = (...texts: readonly string[]) =>
    interfaceStatistics(
      { interfaceNumber: 0, atNs: 0n },
      texts.map((text) => textOption(PcapngOption.comment, text)),
    )
  const file = interfaces.blocksOfFile()
  const id = file.interface(described)
  const device = interfaces.blocksOf('d', { alignNs: 0n, isContinued: false })
  assert.equal(device.interface(described), id)
  file.statistics(id, said('capfleet drops: earlier', 'capfleet missing: d until then'))
  device.statistics(id, said('capfleet gap: now', 'capfleet drops: earlier'))
  assert.deepEqual(
    interfaces.remarks().map(({ comments }) => comments),
    [['capfleet gap: now', 'capfleet drops: earlier']],
  )
})

test('a name whose bytes are no text is refused before it is too long for a block', () => {
  const blocks = open().blocksOf('d', { alignNs: 0n, isContinued: false })
  const name = textOption(PcapngOption.interfaceName, 'd:cap0')
  const described = interfaceDescription(ETHERNET, [
    { ...name, value: Buffer.alloc(8_000, 0xff) },
    IN_NANOSECONDS,
  ])
  assert.throws(() => blocks.interface(described), /an interface is described by \d{5} bytes/)
})

test('what an earlier merge said of copies is not kept, because another packet may be kept now', (t) => {
  const interfaces = open()
  const remarked = t.mock.method(interfaces.merged, 'remark')
  const named = interfaceDescription(ETHERNET, [
    textOption(PcapngOption.interfaceName, 'd:cap0'),
    IN_NANOSECONDS,
  ])
  const gap = textOption(PcapngOption.comment, 'capfleet gap: an hour')
  const copies = textOption(PcapngOption.comment, 'capfleet copies: 1 d:cap0')
  const file = interfaces.blocksOfFile()
  const tag = file.interface(named)
  file.remark({ tag, ns: 5n }, optionBytes([gap, copies]))
  file.remark({ tag, ns: 6n }, optionBytes([copies]))
  assert.deepEqual(
    remarked.mock.calls.map(({ arguments: [id, ns, options] }) => [id, ns, options]),
    [[tag, 5n, optionBytes([gap])]],
  )
})
