/**
 * The cost of a store's index and sieves: their share of the data, and the processor time of an import that creates
 * them.
 */
import { copyFile, readdir, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { tempFolder } from '../../support/temp-folder.ts'
import { writeImixTraffic } from '../inputs/imix-traffic.ts'
import { printCells } from '../report/print-cells.ts'
import { importAsStreams } from '../sides/engine-run.ts'

const INPUT_BYTES = 256 * 2 ** 20
const WIDTHS = [44, 12]

/**
 * An import also reads, checks and writes the packets: its time less that of a copy is an upper bound for the cost of
 * the index.
 */
export async function printIndexFigures(): Promise<void> {
  await using folder = await tempFolder()
  const path = join(folder.path, 'in.pcap')
  const { packets } = await writeImixTraffic([path], { seed: 1, startNs: 0n, bytes: INPUT_BYTES })
  const perMillion = (cpuSeconds: number) => (cpuSeconds / (packets / 1e6)).toFixed(3)
  const copied = await cpuSecondsOf(() => copyFile(path, `${path}.copy`))
  let streams: readonly string[] = []
  const imported = await cpuSecondsOf(async () => {
    streams = await importAsStreams(join(folder.path, 'store'), [path])
  })
  printCells(['CPU s per million packets: import', perMillion(imported)], WIDTHS)
  printCells(['CPU s per million packets: copy of the file', perMillion(copied)], WIDTHS)
  const bytes = await bytesByEnding(streams[0] ?? '')
  const data = bytes.get('.pcap') ?? Number.NaN
  for (const [ending, size] of bytes) {
    if (ending !== '.pcap') printCells([`% of the data: ${ending}`, ((100 * size) / data).toFixed(3)], WIDTHS)
  }
}

async function cpuSecondsOf(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}

async function bytesByEnding(folder: string): Promise<ReadonlyMap<string, number>> {
  const bytes = new Map<string, number>()
  for (const name of await readdir(folder)) {
    const { size } = await stat(join(folder, name))
    bytes.set(extname(name), (bytes.get(extname(name)) ?? 0) + size)
  }
  return bytes
}
