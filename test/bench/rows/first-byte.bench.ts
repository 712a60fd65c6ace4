import { open, writeFile } from 'node:fs/promises'
import { startFileNginx } from '../../support/processes/temp-proxy.ts'
import { type Measure, measureCommand, shellOutput } from '../report/measure-command.ts'
import type { BenchServer } from '../sides/bench-fleet.ts'
import { download, packetsOf, shellLine, withCpuOf } from '../sides/contenders.ts'
import { onePercentAtNinety, rangeTarget, rangeWords, storedCapture } from '../sides/stored-capture.ts'
import type { BenchParts, Contender, Row, WorkloadMaker } from './row.ts'

const PCAP_HEADER_BYTES = 24
/** How many times larger the whole capture is than the small store. */
const TIMES = 64n
const SMALL_DEVICE = 1

/** How soon an answer begins, whatever the size of the store; and the cost of an empty answer. */
export const firstBytes: readonly Row[] = [
  { name: 'first-byte', what: 'first byte of that range, nginx of the file', make: againstNginx() },
  {
    name: 'first-byte-64',
    what: 'first byte of a range, a store with a 64th of the time',
    floor: 0.5,
    goal: 0.83,
    make: againstSmallStore('warm'),
  },
  {
    name: 'first-byte-64-cold',
    what: 'the same, files out of the page cache before each call',
    floor: 0.5,
    goal: 0.83,
    make: againstSmallStore('cold'),
  },
  { name: 'no-packets', what: 'control: no packets, nginx of an empty capture', make: emptyAnswer() },
]

/** The best possible with HTTP at this moment: a server that only opens a file. */
function againstNginx(): WorkloadMaker {
  return async (parts) => {
    const stored = await storedCapture(parts)
    const { url, pid } = parts.owned.use(await startFileNginx(stored.path, 'off'))
    const { target, ...range } = onePercentAtNinety(stored)
    const peer = {
      label: 'nginx',
      run: async () => {
        const { seconds } = await toFirstByte({ url, pid, credentials: 'u:p' }, '/')
        // The whole file follows, so its processor time is not that of a first byte.
        return { seconds, peakRssMiB: 0 }
      },
      // nginx does not know time ranges, so the output of ours is compared with the file.
      output: () => packetsOf(shellLine(rangeWords(stored.path, range, '-'))),
    }
    return { inputBytes: 0, ours: firstByteOf('capfleet', stored.device, target), peer }
  }
}

/** Both stores have the requested packets. */
function againstSmallStore(cache: 'warm' | 'cold'): WorkloadMaker {
  return async (parts) => {
    const stored = await storedCapture(parts)
    const { beginNs } = onePercentAtNinety(stored)
    const smallNs = (stored.lastNs - stored.firstNs) / TIMES
    const small = `${stored.path}.small`
    await shellOutput(shellLine(rangeWords(stored.path, { beginNs, endNs: beginNs + smallNs }, small)))
    await parts.fleet.importFile(SMALL_DEVICE, 'bench-small', small)
    const target = rangeTarget({ beginNs, endNs: beginNs + smallNs / 2n })
    const side = (label: string, index: number, device: BenchServer): Contender => {
      const asked = firstByteOf(label, device, target)
      if (cache === 'warm') return asked
      const run = async () => {
        await leavePageCache(parts.fleet.storeOf(index))
        return asked.run()
      }
      return { ...asked, run }
    }
    const ours = side('64 times', 0, stored.device)
    const peer = side('small store', SMALL_DEVICE, await parts.fleet.device(SMALL_DEVICE))
    return { inputBytes: 0, ours, peer }
  }
}

/** Part of every other row, and most of the rows that read little. */
function emptyAnswer(): WorkloadMaker {
  return async (parts: BenchParts) => {
    const { path, device, firstNs } = await storedCapture(parts)
    const empty = `${path}.empty`
    await writeFile(empty, await fileHeader(path))
    const { url, pid } = parts.owned.use(await startFileNginx(empty, 'off'))
    const peer: Contender = {
      label: 'nginx',
      run: () => withCpuOf(pid, () => measureCommand('curl', ['-fsS', url, '-o', '/dev/null'], { pid })),
      output: () => packetsOf(shellLine(['curl', '-fsS', url])),
    }
    const target = rangeTarget({ beginNs: firstNs - 2n, endNs: firstNs - 1n })
    return { inputBytes: 0, ours: download('no packets', device, target), peer }
  }
}

async function fileHeader(path: string): Promise<Buffer> {
  await using file = await open(path)
  const { buffer } = await file.read(Buffer.alloc(PCAP_HEADER_BYTES), 0, PCAP_HEADER_BYTES, 0)
  return buffer
}

function firstByteOf(label: string, device: BenchServer, target: string): Contender {
  return { ...download(label, device, target), run: () => toFirstByte(device, target) }
}

function toFirstByte({ url, credentials, pid }: BenchServer, target: string): Promise<Measure> {
  const words = ['curl', '-sS', '-u', credentials, '-w', '%{time_starttransfer}', '-o', '/dev/null']
  const line = shellLine([...words, url + target])
  return withCpuOf(pid, async () => ({ seconds: Number(await shellOutput(line)), peakRssMiB: 0 }))
}

/** Unwritten pages would stay in the cache, so they are written first. dd notifies the kernel by posix_fadvise. */
async function leavePageCache(folder: string): Promise<void> {
  const forget = 'sync -f "$1"; dd if="$1" iflag=nocache count=0 status=none'
  await shellOutput(
    `${shellLine(['find', folder, '-type', 'f', '-exec', 'sh', '-c', forget, 'sh', '{}'])} ';'`,
  )
}
