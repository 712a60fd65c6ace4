/** Starts a recorder on a store after a power loss, ends the running capture, and reads the content of the store. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { startRecorder } from '../../../appliance/recorder.ts'
import { captureConfigSchema } from '../../../appliance/settings/capture-config.ts'
import { portFolder, storePaths } from '../../../appliance/store/store-paths.ts'
import { type StoredCapture, segmentsOf, selectSegments } from '../../../appliance/store/stored-capture.ts'
import { Download } from '../../../native/addon.ts'
import { createLog } from '../../../src/shared/base/log.ts'
import { storedNumbers } from '../packets/stored-numbers.ts'
import { storedCaptureOf } from './store-captures.ts'

export interface RecoveredCapture {
  readonly record: StoredCapture
  /** Numbers of its packets, in stored order. */
  readonly numbers: readonly number[]
}

/** Captures of numbered packets, oldest first. Fails if anything in the store is incomplete. */
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
  for (const name of await readdir(captures)) recovered.push(await readCapture(storePath, name))
  return recovered.sort((a, b) => (a.record.createdAt < b.record.createdAt ? -1 : 1))
}

async function readCapture(storePath: string, name: string): Promise<RecoveredCapture> {
  const folder = join(storePaths(storePath).captures, name)
  const record = await storedCaptureOf(storePath, name)
  assert.equal(record.name, name)
  assert.equal(record.state, 'closed')
  assert.deepEqual(record.problems, [])
  const segments = [...segmentsOf(record)]
  const files = ['capture.copy.json', 'capture.json', 'segments.log']
  assert.deepEqual((await readdir(folder)).sort(), segments.length === 0 ? files : ['cap0', ...files])
  if (segments.length === 0) return { record, numbers: [] }
  assert.deepEqual(
    (await readdir(join(portFolder(folder, 0), '00000'))).sort(),
    segments.flatMap((_, index) => filesOf(index + 1)),
    `the segments of ${name} are those of its log, numbered without a gap`,
  )
  const numbers = await storedNumbers(folder)
  assert.equal(record.packets, BigInt(numbers.length), `the log of ${name}`)
  await assertSound(record, folder, numbers.length)
  return { record, numbers }
}

function filesOf(segment: number): string[] {
  return ['idx', 'pcap', 'sieve', 'tally'].map((ending) => `${String(segment).padStart(8, '0')}.${ending}`)
}

/** The checksums in the index match the packets. */
async function assertSound(capture: StoredCapture, folder: string, packets: number): Promise<void> {
  const segments = selectSegments(capture, 0, { fromNs: 0n, toNs: 2n ** 62n })
  await using download = await Download.open({
    streams: [{ port: 0, folder: portFolder(folder, 0), segments }],
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
