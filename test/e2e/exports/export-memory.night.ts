/**
 * A large export: how much memory its worker needs, and how much is fetched again when the worker is killed in the
 * middle.
 *
 *   EXPORT_BYTES=20000000000 SPAN_BYTES=268435456 node --test test/e2e/exports/export-memory.night.ts
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import { WORKER_TIMINGS } from '../../../src/worker/worker-timings.ts'
import { eventually } from '../../support/eventually.ts'
import { ExportWorkerProcess } from '../../support/exports/export-worker-process.ts'
import { EXPORT_DEVICES, ExportWorld } from '../../support/exports/export-world.ts'
import { httpOpen } from '../../support/http-get.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import { pause } from '../../support/pause.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const EXPORT_BYTES = Number(process.env.EXPORT_BYTES ?? 60_000_000)
const SPAN_BYTES = Number(process.env.SPAN_BYTES ?? 1_048_576)
const DEVICE_BYTES = EXPORT_BYTES / EXPORT_DEVICES.length
/** The same value as in open-exports.ts. */
const CHECKPOINT_BYTES = Math.min(33_554_432, SPAN_BYTES)
/** Each window is fetched while the previous one is merged. */
const WINDOWS_AHEAD = 2
/** Heads of answers, lists, probes, and data that was on the way to a dead process: as much as the sockets hold. */
const ELSE_BYTES = 3_000_000
/** How much a worker may grow over a whole export, whatever the export's size. */
const GROWTH_BYTES = 400_000_000
const SAMPLE_MS = 100
const RECORD_BYTES = 1_016
const RECORDS_AT_ONCE = 4_096
const BEGIN_S = 1_790_000_000
/** Records per second of one device. */
const RECORDS_PER_SECOND = 10_000
/** The time limit for a large export. */
const EXPORT_MS = EXPORT_BYTES / 10_000

test(`an export of ${EXPORT_BYTES} bytes from three devices needs little memory, and little is fetched again when its worker is killed`, {
  timeout: TEST_LIMIT_MS + 2 * EXPORT_MS,
}, async (t) => {
  await using world = await ExportWorld.create({
    captureBytes: 0,
    exports: { spanBytes: SPAN_BYTES },
    settings: { health: { failuresMax: 1_000_000, intervalS: 60 } },
  })
  await using folder = await tempFolder()
  for (const { name, appliance } of world.devices) {
    const path = join(folder.path, `${name}.pcap`)
    await writeLargeCapture(path)
    await appliance.importFiles(name, path)
    await rm(path)
  }
  const records = Math.floor(DEVICE_BYTES / RECORD_BYTES)
  const seconds = Math.ceil(records / RECORDS_PER_SECOND) + 1
  const range = `TSBegin=${BEGIN_S}000000000&TSEnd=${BEGIN_S + seconds}000000000`
  const direct = await directSha256(world, range)
  for (const { line } of world.devices) line.receivedBytes = 0
  await using worker = await ExportWorkerProcess.start({
    gateway: world.gateway,
    folder: folder.path,
    name: 'worker',
    // Data that a slow worker fetches twice, because it is taken for dead, would be counted here.
    timings: WORKER_TIMINGS,
  })
  const before = await rssOf(worker.pid)
  let most = before
  const sampling = new AbortController()
  const sampler = (async () => {
    while (!sampling.signal.aborted) {
      most = Math.max(most, await rssOf(worker.pid).catch(() => 0))
      await pause(SAMPLE_MS, 'memory is sampled')
    }
  })()
  const startedMs = performance.now()
  const id = await world.ordered(range)
  const isHalf = async () => Number((await world.shown(id)).progress.fetchedBytes) > EXPORT_BYTES / 2
  await eventually(isHalf, { limitMs: EXPORT_MS, message: 'half of it is fetched' })
  await worker.signal('SIGKILL')
  await worker.start()
  const shown = await world.ended(id, EXPORT_MS)
  const tookMs = performance.now() - startedMs
  sampling.abort()
  await sampler
  assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
  assert.equal(shown.files[0]?.sha256, direct)
  const received = world.devices.map(({ line }) => line.receivedBytes)
  const repeated = received.map((bytes) => bytes - records * RECORD_BYTES)
  t.diagnostic(`${Math.round(EXPORT_BYTES / tookMs / 1_000)} MB/s, with a worker that was killed`)
  t.diagnostic(`memory of the worker: ${mega(before)} MB before, ${mega(most)} MB at most`)
  t.diagnostic(`fetched again, of each device: ${repeated.map(mega).join(', ')} MB`)
  for (const bytes of repeated) assert.ok(bytes < WINDOWS_AHEAD * CHECKPOINT_BYTES + ELSE_BYTES, `${bytes}`)
  assert.ok(most - before < GROWTH_BYTES, `the worker grew from ${before} to ${most}`)
})

/** Packets of equal length, this many per second. */
async function writeLargeCapture(path: string): Promise<void> {
  await using file = await open(path, 'w')
  await file.write(makePcap([]))
  const block = Buffer.alloc(RECORDS_AT_ONCE * RECORD_BYTES, 0x5a)
  const records = Math.floor(DEVICE_BYTES / RECORD_BYTES)
  for (let first = 0; first < records; first += RECORDS_AT_ONCE) {
    const count = Math.min(RECORDS_AT_ONCE, records - first)
    for (let index = 0; index < count; index += 1) {
      const at = index * RECORD_BYTES
      const number = first + index
      block.writeUInt32LE(BEGIN_S + Math.floor(number / RECORDS_PER_SECOND), at)
      block.writeUInt32LE((number % RECORDS_PER_SECOND) * (1_000_000_000 / RECORDS_PER_SECOND), at + 4)
      block.writeUInt32LE(RECORD_BYTES - 16, at + 8)
      block.writeUInt32LE(RECORD_BYTES - 16, at + 12)
    }
    await file.write(block, 0, count * RECORD_BYTES)
  }
}

async function directSha256(world: ExportWorld, query: string): Promise<string> {
  const path = `${world.gateway.url}/api/v1/pcap/timerange?${query}`
  using answer = await httpOpen(path, { headers: world.gateway.as.user })
  const hash = createHash('sha256')
  await pipeline(answer.response, hash)
  return hash.digest('hex')
}

async function rssOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1_024
}

function mega(bytes: number): number {
  return Math.round(bytes / 100_000) / 10
}
