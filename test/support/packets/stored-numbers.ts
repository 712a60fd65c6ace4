/** What a capture holds of numbered packets, read from its segments by others than the engine. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { listBlocks } from '../../../native/addon.ts'
import { numbersInFile } from './numbered-packets.ts'

const run = promisify(execFile)

/** In stored order. Fails when tcpdump cannot read a segment, or when an index does not fit to it. */
export async function storedNumbers(captureFolder: string): Promise<number[]> {
  const folder = join(captureFolder, 'cap0')
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.pcap')).sort()
  const numbers: number[] = []
  for (const name of names) {
    const found = await numbersInFile(folder, name)
    const [packets, blocks] = await Promise.all([
      packetsByTcpdump(join(folder, name)),
      listBlocks({ streams: [{ port: 0, segments: [join(folder, name.replace('.pcap', ''))] }] }),
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

async function packetsByTcpdump(path: string): Promise<number> {
  const { stdout } = await run('tcpdump', ['-nr', path, '--count'])
  return Number(/^(\d+) packet/.exec(stdout)?.[1])
}
