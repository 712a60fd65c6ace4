/** The numbered packets in a capture, read from its segments without the engine. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { portFolder } from '../../../appliance/store/store-paths.ts'
import { streamOf } from '../../../appliance/store/stored-capture.ts'
import { listBlocks } from '../../../native/addon.ts'
import { type LogEntry, LogEntryKind } from '../../../native/segment-entry.ts'
import { TIME_LIMIT_NS } from '../../../src/shared/query/time/query-time.ts'
import { numbersInFile } from './numbered-packets.ts'

const run = promisify(execFile)

/** In stored order. Fails if tcpdump cannot read a segment, or if an index does not match it. */
export async function storedNumbers(captureFolder: string): Promise<number[]> {
  const folder = join(portFolder(captureFolder, 0), '00000')
  const names = (await readdir(folder)).filter((name) => name.endsWith('.pcap')).sort()
  const numbers: number[] = []
  for (const name of names) {
    const found = await numbersInFile(folder, name)
    const [packets, blocks] = await Promise.all([
      packetsByTcpdump(join(folder, name)),
      listBlocks({ streams: [streamOf(captureFolder, { ...SEGMENT, number: Number.parseInt(name, 10) })] }),
    ])
    assert.equal(packets, found.length, `tcpdump reads ${name}`)
    assert.equal(
      blocks.packets.reduce((sum, count) => sum + count, 0),
      found.length,
      `the index of ${name}`,
    )
    for (const number of found) numbers.push(number)
  }
  return numbers
}

/** An index is read whatever else its segment's entry contains, as long as its times do. */
const SEGMENT: LogEntry = {
  kind: LogEntryKind.finished,
  port: 0,
  flags: 0,
  number: 0,
  minNs: 0n,
  maxNs: TIME_LIMIT_NS - 1n,
  packets: 0n,
  bytes: 0n,
  linkType: 1,
  snaplen: 262_144,
  sideBytes: 0,
  checksum: 0,
}

async function packetsByTcpdump(path: string): Promise<number> {
  const { stdout } = await run('tcpdump', ['-nr', path, '--count'])
  return Number(/^(\d+) packet/.exec(stdout)?.[1])
}
