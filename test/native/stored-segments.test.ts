import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { StreamFiles } from '../../native/download-options.ts'
import { LogEntryKind, SegmentFlag } from '../../native/segment-entry.ts'
import { measureSegment, removeSegment, verifySegment } from '../../native/stored-segments.ts'
import { eventually } from '../support/eventually.ts'
import { importStreams, segmentPathsOf } from '../support/packets/import-streams.ts'
import { makePacket, makePcap } from '../support/packets/packet-maker.ts'
import { tempFolder } from '../support/temp-folder.ts'

const PACKETS = 200
const ADDON = fileURLToPath(new URL('../../native/addon.ts', import.meta.url))

/** One segment that is larger than a download's read-ahead. */
async function bigSegment(folder: string): Promise<{ stream: StreamFiles; segment: string }> {
  const packets = Array.from({ length: PACKETS }, (_, i) => makePacket(BigInt(1_000 + i), `${i}`, 100_000))
  const file = join(folder, 'big.pcap')
  await writeFile(file, makePcap(packets))
  const [stream] = await importStreams(folder, [file])
  assert.ok(stream)
  const [segment] = segmentPathsOf(stream)
  assert.ok(segment)
  return { stream, segment }
}

test('says what a segment holds, and again from where it ended', async () => {
  await using folder = await tempFolder()
  const { segment } = await bigSegment(folder.path)
  const extent = await measureSegment(segment)
  assert.deepEqual([extent.packets, extent.minNs, extent.maxNs], [200n, 1_000n, 1_199n])
  assert.deepEqual([extent.port, extent.linkType, extent.bytes], [0, 1, BigInt(24 + PACKETS * 100_016)])
  assert.deepEqual(await measureSegment(segment, extent), extent)
  await assert.rejects(measureSegment(join(folder.path, 'none')), { code: 'aged-out' })
})

test('a download of another process pins its segment, until kill -9', async () => {
  await using folder = await tempFolder()
  const { stream, segment } = await bigSegment(folder.path)
  const entries = Buffer.from(stream.segments).toString('hex')
  const reader = spawn(
    process.execPath,
    [
      '--input-type=module-typescript',
      '--eval',
      `import { Download } from ${JSON.stringify(ADDON)}
       const download = await Download.open({
         streams: [{ port: 0, folder: ${JSON.stringify(stream.folder)}, segments: Buffer.from('${entries}', 'hex') }],
         beginNs: 0n, endNs: 2n ** 62n, timeResolution: 'nsec', compression: 'none',
       })
       for (let i = 0; i < 3; i++) await download.next()
       console.log('reading')
       setInterval(() => download.totals(), 1_000)`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  await once(reader.stdout, 'data')
  assert.equal(await removeSegment(segment, { evenIfRead: false }), false)
  reader.kill('SIGKILL')
  await once(reader, 'exit')
  await eventually(() => removeSegment(segment, { evenIfRead: false }), {
    message: 'the kernel gives the lock back',
  })
  assert.deepEqual(
    await readdir(dirname(dirname(segment))),
    [],
    'the folder of the group and the table of addresses went too',
  )
})

test('finds a damaged block, marks it on request, and keeps its bytes', async () => {
  await using folder = await tempFolder()
  const { segment } = await bigSegment(folder.path)
  const extent = await measureSegment(segment)
  const entry = {
    ...extent,
    kind: LogEntryKind.finished,
    flags: 0,
    number: 1,
    sideBytes: 0,
  }
  const whole = await verifySegment(segment, entry, { repair: false })
  assert.deepEqual(whole.findings, [])
  const packets = await readFile(`${segment}.pcap`)
  packets.writeUInt8(packets.readUInt8(1_000) ^ 1, 1_000)
  await writeFile(`${segment}.pcap`, packets)
  const found = await verifySegment(segment, entry, { repair: false })
  assert.deepEqual(found.findings.map(({ kind, file, offset }) => [kind, file, offset])[0], [
    'block-damaged',
    `${segment}.pcap`,
    24n,
  ])
  assert.equal(found.isRepaired, false)
  const repaired = await verifySegment(segment, entry, { repair: true })
  assert.equal(repaired.isRepaired, true)
  assert.equal(repaired.flags & SegmentFlag.damaged, SegmentFlag.damaged)
  assert.equal(repaired.packets, extent.packets - (found.findings[0]?.packets ?? 0n))
  const after = await measureSegment(segment)
  assert.deepEqual([after.packets, after.damagedBlocks], [repaired.packets, 1n])
  assert.deepEqual(await readFile(`${segment}.pcap`), packets)
  await assert.rejects(
    verifySegment(segment, entry, { repair: false, signal: AbortSignal.abort(new Error('enough')) }),
    /enough/,
  )
})
