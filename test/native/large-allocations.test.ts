// Memory that downloads no longer use goes back to the system. A file of its own, because what earlier downloads left
// to the allocator would hide it.
import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Download } from '../../native/addon.ts'
import type { StreamFiles, TimeSource } from '../../native/download-options.ts'
import { importCaptureFiles } from '../../native/import-capture-files.ts'
import { streamsIn } from '../support/packets/import-streams.ts'
import { makePcap } from '../support/packets/packet-maker.ts'
import { tempFolder } from '../support/temp-folder.ts'

/** A download in a vendor's time sorts in a window of 16 MiB. */
const WINDOW_MIB = 16
const ROUNDS = 4
const AT_ONCE = 3

async function download(streams: readonly StreamFiles[], timeSource: TimeSource): Promise<void> {
  await using opened = await Download.open({
    streams,
    beginNs: 0n,
    endNs: 2n ** 63n - 1n,
    timeResolution: 'nsec',
    compression: 'none',
    timeSource,
  })
  for (let chunk = await opened.next(); chunk; chunk = await opened.next()) chunk.release()
}

/** Memory that this process may write to, in use or kept for reuse. */
async function dataMib(): Promise<number> {
  const status = await readFile('/proc/self/status', 'utf8')
  return Number(/^VmData:\s+(\d+) kB/m.exec(status)?.[1]) / 1_024
}

test('after downloads in a vendor time, the memory of their windows is returned to the system', async () => {
  await using folder = await tempFolder()
  const file = join(folder.path, 'a.pcap')
  const records = Array.from({ length: 100 }, (_, n) => ({
    ns: BigInt(n) * 1_000n,
    originalLength: 60,
    captured: Buffer.alloc(60),
  }))
  await writeFile(file, makePcap(records))
  const directory = join(folder.path, 'capture')
  await mkdir(directory)
  const streams = streamsIn(directory, (await importCaptureFiles({ files: [file], directory })).streams)
  const downloads = async (timeSource: TimeSource) => {
    for (let round = 0; round < ROUNDS; round += 1)
      await Promise.all(Array.from({ length: AT_ONCE }, () => download(streams, timeSource)))
  }

  // Starts the engine's threads.
  await downloads('nic')
  const before = await dataMib()
  await downloads('vendorA7130')
  const grown = (await dataMib()) - before
  assert.ok(grown < WINDOW_MIB / 2, `${grown.toFixed(0)} MiB more than before`)
})
