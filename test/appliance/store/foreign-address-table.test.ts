/** Tables of addresses that lie where another capture's belong, as after a restore file by file, and missing ones. */
import assert from 'node:assert/strict'
import { copyFile, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { AddressTables } from '../../../appliance/recorder/writer/address-tables.ts'
import { LogEntryKind } from '../../../native/segment-entry.ts'
import { eventually } from '../../support/eventually.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

const PACKETS = 300
const SEGMENT_BYTES = 1 << 16

/** Packets from 10.`net`.0.n: two of these lists differ in nothing else. */
function packetsOf(net: number): PcapRecord[] {
  return Array.from({ length: PACKETS }, (_, index) => {
    const captured = Buffer.alloc(1000)
    captured.writeUInt16BE(0x0800, 12)
    captured[14] = 0x45
    captured.set([10, net, 0, Math.floor(index / 30)], 26)
    return { ns: 1_700_000_000_000_000_000n + BigInt(index), originalLength: captured.length, captured }
  })
}

async function imported(appliance: TempAppliance, name: string, packets: PcapRecord[]): Promise<string> {
  const file = join(appliance.folder, `${name}.pcap`)
  await writeFile(file, makePcap(packets))
  await appliance.importFiles(name, file)
  return join(appliance.storePath, 'captures', name, 'cap0', '00000000.addresses')
}

async function found(
  appliance: TempAppliance,
  StreamName: string,
  FilterAddresses: string,
): Promise<string[]> {
  const query = new URLSearchParams({ StreamName, FilterAddresses })
  const answer = await appliance.get(`/api/v1/pcap/single?${query}`)
  assert.equal(answer.status, 200)
  assert.equal(answer.trailers['capfleet-complete'], '1')
  return recordLines(readPcap(answer.body).records)
}

test('a table of another capture hides no packet, is found by verify, and corrected', async () => {
  await using appliance = await startTempAppliance({ segmentBytes: SEGMENT_BYTES })
  const [first, second] = [packetsOf(1), packetsOf(2)]
  const from = await imported(appliance, 'first', first)
  const to = await imported(appliance, 'second', second)
  const right = await readFile(to)
  assert.notDeepEqual(await readFile(from), right)
  await copyFile(from, to)
  const wanted = recordLines(second.slice(0, 30))
  assert.deepEqual(await found(appliance, 'second', '10.2.0.0'), wanted)
  const { findings } = await appliance.recorder.verify(true, {})
  assert.ok(findings.length > 1)
  for (const { capture, kind, isRepaired } of findings) {
    assert.deepEqual(
      { capture, kind, isRepaired },
      { capture: 'second', kind: 'addresses-wrong', isRepaired: true },
    )
  }
  assert.deepEqual(await found(appliance, 'second', '10.2.0.0'), wanted)
  assert.deepEqual((await appliance.recorder.verify(false, {})).findings, [])
  assert.equal((await appliance.recorder.reindex({})).newInTables, 0n)
})

test('the addresses of segments that an earlier recorder began are added when the next one lists them', async () => {
  await using appliance = await startTempAppliance({ segmentBytes: SEGMENT_BYTES })
  const path = await imported(appliance, 'first', packetsOf(1))
  const whole = await readFile(path)
  await rm(path)
  await using tables = new AddressTables()
  const facts = { port: 0, flags: 0, minNs: 0n, maxNs: 0n, packets: 1n, bytes: 1n, linkType: 1, snaplen: 0 }
  const entryOf = (number: number) =>
    ({ ...facts, kind: LogEntryKind.finished, number, sideBytes: 0, checksum: 0 }) as const
  tables.recorded(join(appliance.storePath, 'captures', 'first'), [1, 2, 3, 4, 5].map(entryOf))
  const isThere = async () => whole.equals(await readFile(path).catch(() => Buffer.alloc(0)))
  await eventually(isThere, { message: 'the columns of all segments are there' })
})
