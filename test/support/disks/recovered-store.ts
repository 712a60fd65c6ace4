/** A recorder starts on a store that has lost its power, and ends the capture that goes on; what the store holds then. */
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { startRecorder } from '../../../appliance/recorder.ts'
import { captureConfigSchema } from '../../../appliance/settings/capture-config.ts'
import { type CaptureRecord, captureRecordSchema } from '../../../appliance/store/capture-record.ts'
import { streamFilesOf } from '../../../appliance/store/segment-entries.ts'
import { segmentPath, storePaths } from '../../../appliance/store/store-paths.ts'
import { Download } from '../../../native/addon.ts'
import type { StreamFiles } from '../../../native/download-options.ts'
import { createLog } from '../../../src/base/log.ts'
import { storedNumbers } from '../packets/stored-numbers.ts'

export interface RecoveredCapture {
  readonly record: CaptureRecord
  /** Of its packets, in stored order. */
  readonly numbers: readonly number[]
}

/** Captures of numbered packets, oldest first. Fails when anything in the store is not whole. */
export async function recoverStore(storePath: string): Promise<readonly RecoveredCapture[]> {
  const capture = { timeZone: 'UTC', config: captureConfigSchema.parse({}) }
  const recorder = await startRecorder({ storePath, capture, log: createLog('test', 'silent') })
  try {
    await new RecorderClient(storePath).stopCapture(false)
  } finally {
    await recorder.close()
  }
  const { captures } = storePaths(storePath)
  const recovered: RecoveredCapture[] = []
  for (const name of await readdir(captures)) recovered.push(await readCapture(captures, name))
  return recovered.sort((a, b) => (a.record.createdAt < b.record.createdAt ? -1 : 1))
}

async function readCapture(captures: string, name: string): Promise<RecoveredCapture> {
  const folder = join(captures, name)
  const record = captureRecordSchema.parse(JSON.parse(await readFile(join(folder, 'capture.json'), 'utf8')))
  assert.equal(record.name, name)
  assert.equal(record.state, 'closed')
  const [stream] = record.streams
  const files = stream === undefined ? ['capture.json'] : ['cap0', 'capture.json']
  assert.deepEqual((await readdir(folder)).sort(), files)
  if (stream === undefined) return { record, numbers: [] }
  const segments = stream.segments.map(({ number }) => segmentPath(folder, 0, number))
  assert.deepEqual(
    (await readdir(join(folder, 'cap0'))).sort(),
    segments.flatMap((_, index) => filesOf(index + 1)),
    `the segments of ${name} are those of its record, numbered without a gap`,
  )
  const numbers = await storedNumbers(folder)
  assert.equal(record.packets, BigInt(numbers.length), `the record of ${name}`)
  await assertSound(streamFilesOf(folder, stream, stream.segments), numbers.length)
  return { record, numbers }
}

function filesOf(segment: number): string[] {
  return ['idx', 'pcap', 'sieve', 'tally'].map((ending) => `${String(segment).padStart(8, '0')}.${ending}`)
}

/** The check sums of the index are those of the packets. */
async function assertSound(stream: StreamFiles, packets: number): Promise<void> {
  await using download = await Download.open({
    streams: [stream],
    beginNs: 0n,
    endNs: 2n ** 62n,
    timeResolution: 'nsec',
    compression: 'none',
  })
  for (let chunk = await download.next(); chunk !== undefined; chunk = await download.next()) chunk.release()
  const totals = download.totals()
  assert.equal(totals.corruptBlocks, 0n)
  assert.equal(totals.packets, BigInt(packets))
}
