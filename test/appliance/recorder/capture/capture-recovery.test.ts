/**
 * A recorder finds an active capture that another boot of the machine has left. Recovery after crashes and power cuts
 * is tested in test/e2e/failures/recorder-kills.test.ts and power-loss.night.ts.
 *
 *   RECOVERY_TIB=<n>   a capture of this size (sparse files, but whole indexes) instead of a small one
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, mkdir, open, readFile, stat, truncate } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { RecorderClient } from '../../../../appliance/link/recorder-client.ts'
import { finishedEntries } from '../../../../appliance/recorder/writer/finished-entries.ts'
import { StoreWriter } from '../../../../appliance/recorder/writer/store-writer.ts'
import { startRecorder } from '../../../../appliance/recorder.ts'
import { captureConfigSchema } from '../../../../appliance/settings/capture-config.ts'
import { segmentPath } from '../../../../appliance/store/store-paths.ts'
import { importCaptureFiles, type SegmentSummary } from '../../../../native/import-capture-files.ts'
import { createLog } from '../../../../src/shared/base/log.ts'
import { captureFacts } from '../../../support/packets/capture-records.ts'
import { makePacket, makePcap, makeRecord } from '../../../support/packets/packet-maker.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const TIB = Number(process.env.RECOVERY_TIB ?? 0)
const SEGMENT_BYTES = TIB > 0 ? 2 ** 30 : 2 ** 23
const SEGMENTS = TIB > 0 ? TIB * 1024 : 32
const PACKET_BYTES = 9_000
const TAIL_BYTES = 1_000_000
/** Limits for the recovery of 1 TiB. */
const LIMIT_MS = 5_000

test('of a capture that is left, indexes are read and packets are not', async (t) => {
  await using folder = await tempFolder()
  const model = await makeSegment(folder.path)
  const storePath = join(folder.path, 'store')
  await using writer = await StoreWriter.open(storePath)
  const segments = Array.from({ length: SEGMENTS }, (_, index) => ({ ...model.summary, number: index + 1 }))
  const stream = { port: 0, linkType: 1, snaplen: 262_144, segments: segments.slice(0, -1) }
  const left = captureFacts('long', { type: 'capture', state: 'active', bootId: 'another' })
  assert.ok(await writer.makeCapture(left))
  await writer.addSegments('long', finishedEntries([stream]))
  for (const { number } of segments) await placeSegment(writer.folderOf('long'), number, model)
  const newest = `${segmentPath(writer.folderOf('long'), 0, { number: SEGMENTS, isFlat: false })}.pcap`
  await truncate(newest, Number(model.summary.bytes) + TAIL_BYTES)
  await writer[Symbol.asyncDispose]()
  if (TIB > 0) await forget(writer.folderOf('long'))

  const [readBefore, beganMs] = [await bytesRead(), performance.now()]
  const capture = { timeZone: 'UTC', config: captureConfigSchema.parse({}) }
  const recorder = await startRecorder({ storePath, capture, log: createLog('test', 'silent') })
  try {
    const tookMs = performance.now() - beganMs
    const read = (await bytesRead()) - readBefore
    const client = new RecorderClient(storePath)
    assert.equal((await client.captureReport()).state, 'running')
    const { name, packets } = await client.stopCapture(false)
    assert.deepEqual([name, packets], ['long', model.summary.packets * BigInt(SEGMENTS)])
    assert.equal((await stat(newest)).size, Number(model.summary.bytes))
    const indexBytes = (await stat(`${model.path}.idx`)).size * SEGMENTS
    t.diagnostic(`${Math.round(tookMs)} ms, ${read} bytes read, of indexes ${indexBytes}`)
    assert.ok(read < 2 * indexBytes + SEGMENT_BYTES / 2, `${read} bytes read`)
    if (TIB === 1) assert.ok(tookMs < LIMIT_MS)
  } finally {
    await recorder.close()
  }
  const beforeControl = await bytesRead()
  await readFile(newest)
  assert.ok((await bytesRead()) - beforeControl >= Number(model.summary.bytes), 'reading packets is seen')
})

interface Model {
  /** Without ending the capture. */
  readonly path: string
  readonly summary: SegmentSummary
}

/** A segment written by the engine. */
async function makeSegment(folder: string): Promise<Model> {
  const file = join(folder, 'model.pcap')
  const directory = join(folder, 'model')
  await mkdir(directory)
  {
    await using handle = await open(file, 'w')
    await handle.write(makePcap([]))
    for (let at = 24; at + 16 + PACKET_BYTES <= SEGMENT_BYTES; at += 16 + PACKET_BYTES) {
      await handle.write(makeRecord(makePacket(BigInt(at) * 1_000n, `packet at ${at}`, PACKET_BYTES)))
    }
  }
  const { streams } = await importCaptureFiles({ files: [file], directory, segmentBytes: SEGMENT_BYTES })
  const [summary, ...others] = streams[0]?.segments ?? []
  assert.ok(summary && others.length === 0)
  return { path: segmentPath(directory, 0, summary), summary }
}

/** The same index, and holes instead of packets. */
async function placeSegment(capture: string, number: number, model: Model): Promise<void> {
  const path = segmentPath(capture, 0, { number, isFlat: false })
  await mkdir(dirname(path), { recursive: true })
  await copyFile(`${model.path}.idx`, `${path}.idx`)
  await copyFile(`${model.path}.tally`, `${path}.tally`)
  await using data = await open(`${path}.pcap`, 'w')
  await data.truncate(Number(model.summary.bytes))
}

/** Drops the capture from the machine's page cache, as after a boot. */
async function forget(capture: string): Promise<void> {
  const script = 'sync -f . && for file in *; do dd if="$file" iflag=nocache count=0 status=none; done'
  await promisify(execFile)('sh', ['-c', script], { cwd: join(capture, 'cap0', '00000') })
}

/** Bytes read by this process so far, from files and everything else. */
async function bytesRead(): Promise<number> {
  return Number(/^rchar: (\d+)$/m.exec(await readFile('/proc/self/io', 'utf8'))?.[1])
}
