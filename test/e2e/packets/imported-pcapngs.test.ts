/** Imports of pcapng files of every shape, compared with what Wireshark finds in them. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { after, before, test } from 'node:test'
import { STORABLE_FILES } from '../../support/packets/capture-files.ts'
import { FILE, runOn } from '../../support/packets/file-programs.ts'
import { readPcapng } from '../../support/packets/pcapng-reader.ts'
import { pcapngShapes } from '../../support/packets/pcapng-shapes.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

const NS_PER_S = 1_000_000_000n
/** Link types by Wireshark's numbers. */
const LINK_TYPE_OF: ReadonlyMap<string, number> = new Map([
  ['1', 1],
  ['7', 101],
  ['15', 0],
  ['25', 113],
  ['210', 276],
])
let appliance: TempAppliance

before(async () => {
  appliance = await startTempAppliance()
})
after(() => appliance[Symbol.asyncDispose]())

interface Packet {
  readonly ns: bigint
  /** Of the section, if it has packets of several. */
  readonly interfaceId: string
  readonly text: string
}

function packetOf(ns: bigint, interfaceId: string, rest: readonly (string | number | undefined)[]): Packet {
  return { ns, interfaceId, text: [ns, ...rest].join(' ') }
}

interface Frame {
  readonly _source: {
    readonly layers: {
      readonly frame: Readonly<Record<string, string>>
      readonly frame_raw?: readonly string[]
    }
  }
}

/** What Wireshark finds, in the order of the file. */
function foundByTshark(bytes: Buffer): Packet[] {
  const shown = runOn(appliance.folder, bytes, ['tshark', '-r', FILE, '-T', 'json', '-x', '-J', 'frame'])
  const frames: readonly Frame[] = JSON.parse(shown.toString())
  return frames.flatMap(({ _source: { layers } }) => {
    const { frame, frame_raw: raw } = layers
    const id = frame['frame.interface_id']
    // A custom block is a frame without interface, and no packet: capinfos does not count it.
    if (id === undefined) return []
    // A Simple Packet has no time.
    const [seconds = '0', fraction = '0'] = (frame['frame.time_epoch'] ?? '0').split('.')
    const ns = BigInt(seconds) * NS_PER_S + BigInt(fraction.padEnd(9, '0'))
    const linkType = LINK_TYPE_OF.get(frame['frame.encap_type'] ?? '')
    return packetOf(ns, `${frame['frame.section_number']}:${id}`, [
      linkType,
      frame['frame.len'],
      raw?.[0] ?? '',
    ])
  })
}

function foundByImport(pcapng: Buffer): Packet[] {
  const { packets, interfaces } = readPcapng(pcapng)
  return packets.map(({ port, ns, originalLength, captured }) => {
    const { name = '', linkType } = interfaces[port] ?? {}
    return packetOf(ns, name.replace(/^.*:cap/, ''), [linkType, originalLength, captured.toString('hex')])
  })
}

/** A download is in the order of time; at equal times each interface has its order. */
function sorted(packets: readonly Packet[]): Packet[] {
  return packets.toSorted((a, b) =>
    a.ns === b.ns ? a.interfaceId.localeCompare(b.interfaceId, 'en') : a.ns < b.ns ? -1 : 1,
  )
}

/** Each shape in one byte order, in turn; at night in both. */
const SHAPES = [...pcapngShapes()].filter(
  ([name], at) =>
    process.env.CAPFLEET_LONG === '1' ||
    name.endsWith((at >> 1) % 2 === 0 ? '-big-endian' : '-little-endian'),
)
const FILES: ReadonlyMap<string, Buffer> = new Map([
  ...SHAPES,
  ...STORABLE_FILES.filter((path) => path.endsWith('.pcapng')).map((path): [string, Buffer] => [
    basename(path),
    readFileSync(path),
  ]),
])

for (const [file, bytes] of FILES) {
  test(`an import of ${file}`, async () => {
    const name = file.replace(/\W/g, '_')
    const path = join(appliance.folder, name)
    await writeFile(path, bytes)
    const expected = sorted(foundByTshark(bytes))
    if (expected.length === 0) {
      await assert.rejects(appliance.importFiles(name, path), /contains no packets/)
      return
    }
    await appliance.importFiles(name, path)
    const { body } = await appliance.get(`/api/v1/pcap/single?StreamName=${name}&Format=pcapng`)
    const found = foundByImport(body)
    assert.deepEqual(
      found.map(({ text }) => text),
      expected.map(({ text }) => text),
    )
    const ports = new Map(expected.map(({ interfaceId }, at) => [interfaceId, found[at]?.interfaceId]))
    for (const [at, { interfaceId }] of expected.entries())
      assert.equal(found[at]?.interfaceId, ports.get(interfaceId), 'an interface is one port')
    // Of several sections the interfaces of one number may have different link types, and so different ports.
    if (bytes.lastIndexOf('\n\r\r\n') === 0)
      for (const [interfaceId, port] of ports) assert.equal(interfaceId, `1:${port}`)
  })
}
