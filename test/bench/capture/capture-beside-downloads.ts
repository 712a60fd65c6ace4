/** Capture at rising rates, alone and while four clients download at full speed from the same store. */
import { join } from 'node:path'
import { captureWhileReading } from '../../support/live/busy-capture.ts'
import { captureWire } from '../../support/network/capture-wire.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { writeImixTraffic } from '../inputs/imix-traffic.ts'
import { printCells } from '../report/print-cells.ts'

const INPUT_BYTES = 64 * 2 ** 20
const RATES = [100_000, 200_000, 0]
/** Values of Compression, one for each client: as many as a device serves. */
const READERS: readonly (readonly string[])[] = [[], ['none', 'none', 'fast', 'fast']]
const WIDTHS = [9, 9, 11, 9, 9, 9, 11]
const MIB = 2 ** 20

/** Prints the table and leaves nothing behind. Needs root. */
export async function printCaptureBesideDownloads(rounds: number): Promise<void> {
  await using folder = await tempFolder()
  const traffic = join(folder.path, 'sent.pcap')
  await writeImixTraffic([traffic], { seed: 1, startNs: 0n, bytes: INPUT_BYTES })
  printCells(['rate', 'clients', 'offered/s', 'offered', 'stored', 'dropped', 'MiB/s read'], WIDTHS)
  for (const packetsPerSecond of RATES) {
    for (const readers of READERS) {
      await using wire = await captureWire()
      const run = await captureWhileReading({ wire, traffic, rounds, packetsPerSecond, readers })
      const cells = [
        packetsPerSecond === 0 ? 'max' : packetsPerSecond.toLocaleString('en'),
        String(readers.length),
        Math.round(Number(run.sent) / run.seconds).toLocaleString('en'),
        String(run.sent),
        String(run.stored),
        String(run.drops),
        (run.downloadedBytes / run.seconds / MIB).toFixed(0),
      ]
      printCells(cells, WIDTHS)
    }
  }
}
