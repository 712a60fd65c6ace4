// Memory that downloads and searches no longer use goes back to the system. A file of its own, because what earlier
// downloads left to the allocator would hide it.
import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Download } from '../../native/addon.ts'
import type { StreamFiles, TimeSource } from '../../native/download-options.ts'
import { importCaptureFiles } from '../../native/import-capture-files.ts'
import { loadAddon } from '../../native/load-addon.ts'
import { packAddressList } from '../../src/shared/query/filter/address-list.ts'
import { streamsIn } from '../support/packets/import-streams.ts'
import { makePcap } from '../support/packets/packet-maker.ts'
import { tempFolder } from '../support/temp-folder.ts'

/** A download in a vendor's time sorts in a window of 16 MiB. */
const WINDOW_MIB = 16
const ROUNDS = 4
const AT_ONCE = 3
/** One with this many addresses takes about 2 MiB. */
const SEARCHES = 64
const ADDRESSES = 10_000

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

/** Memory that this process may write to, in use or kept for reuse, except JavaScript's own. */
async function dataMib(): Promise<number> {
  const status = await readFile('/proc/self/status', 'utf8')
  const bytes = Number(/^VmData:\s+(\d+) kB/m.exec(status)?.[1]) * 1_024
  return (bytes - process.memoryUsage().heapTotal) / 1_048_576
}

/** A capture in a folder. */
async function importPackets(folder: string): Promise<readonly StreamFiles[]> {
  const file = join(folder, 'a.pcap')
  const records = Array.from({ length: 100 }, (_, n) => ({
    ns: BigInt(n) * 1_000n,
    originalLength: 60,
    captured: Buffer.alloc(60),
  }))
  await writeFile(file, makePcap(records))
  const directory = join(folder, 'capture')
  await mkdir(directory)
  return streamsIn(directory, (await importCaptureFiles({ files: [file], directory })).streams)
}

test('after downloads in a vendor time, the memory of their windows is returned to the system', async () => {
  await using folder = await tempFolder()
  const streams = await importPackets(folder.path)
  const downloads = async (timeSource: TimeSource) => {
    for (let round = 0; round < ROUNDS; round += 1)
      await Promise.all(Array.from({ length: AT_ONCE }, () => download(streams, timeSource)))
  }

  // Starts the engine's threads.
  await downloads('nic')
  const before = await dataMib()
  await downloads('vendorA7130')
  const grown = (await dataMib()) - before
  assert.ok(grown < WINDOW_MIB, `${grown.toFixed(0)} MiB more than before`)
})

test('a finished search keeps no memory, even while its handle lives', async () => {
  await using folder = await tempFolder()
  const streams = await importPackets(folder.path)
  const engine = loadAddon<{
    searchAddresses(
      streams: readonly StreamFiles[],
      beginNs: bigint,
      endNs: bigint,
      ranges: Uint8Array,
    ): { readonly finished: Promise<unknown>; cancel(): void }
  }>('capfleet')
  const list = Array.from({ length: ADDRESSES }, (_, n) => `10.0.${n >> 8}.${n & 255}`).join(',')
  const addresses = packAddressList(list)
  const search = async () => {
    const { finished, cancel } = engine.searchAddresses(streams, 0n, 2n ** 63n - 1n, addresses)
    await finished
    return cancel
  }

  await search()
  const before = await dataMib()
  const handles: (() => void)[] = []
  while (handles.length < SEARCHES) handles.push(await search())
  const grown = (await dataMib()) - before
  assert.equal(handles.length, SEARCHES)
  assert.ok(grown < SEARCHES / 2, `${grown.toFixed(0)} MiB more than before`)
})
