// A partial export is filled later: it keeps what it has, and the missing packets are merged in.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { mountSmallDisk } from '../../../support/disks/small-disk.ts'
import { EXPORT_BEGIN_NS, EXPORT_SECONDS } from '../../../support/exports/export-captures.ts'
import { ExportWorld, type ShownExport, WHOLE_RANGE } from '../../../support/exports/export-world.ts'
import { readPcap, recordLines } from '../../../support/packets/pcap-records.ts'
import { startTempWorker, type TempWorker } from '../../../support/processes/temp-worker.ts'

const UNPACK = { none: 'cat', fast: 'zcat', zstd: 'zstdcat' }

test('a hole that is larger than the spool is filled', async (t) => {
  const disk = await mountSmallDisk(8_000_000)
  if (typeof disk === 'string') return t.skip(disk)
  await using _disk = disk
  await using world = await ExportWorld.create({
    captureBytes: 10_000_000,
    exports: { deviceRetryS: 1, spool: join(disk.path, 'spool') },
  })
  await using _worker = await startTempWorker(world.gateway)
  const { line } = world.device('west')
  line.isDown = true
  const { id, state } = await world.ended(await world.ordered(`${WHOLE_RANGE}&OnMissing=partial`))
  assert.equal(state, 'partial')
  line.isDown = false
  await world.isAnswering('west')
  const answer = await world.call(`/v1/exports/${id}/fill`, { method: 'POST' })
  assert.equal(answer.status, 202, answer.body.toString())
  const shown = await world.ended(id)
  assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
  const [file] = await world.files(shown)
  assert.ok(file?.equals(await world.directRange(WHOLE_RANGE)))
})

describe('filling a partial export', () => {
  let world: ExportWorld
  let worker: TempWorker

  before(async () => {
    world = await ExportWorld.create({ captureBytes: 2_500_000, exports: { deviceRetryS: 1 } })
    worker = await startTempWorker(world.gateway)
  })
  after(async () => {
    await worker[Symbol.asyncDispose]()
    await world[Symbol.asyncDispose]()
  })
  beforeEach(() => {
    for (const { line } of world.devices) {
      line.isDown = false
      line.release()
      line.refuses = undefined
    }
  })

  /** An export that was completed without one device. */
  async function partial(query: string, device: 'east' | 'west'): Promise<ShownExport> {
    const { line } = world.device(device)
    line.isDown = true
    const shown = await world.ended(await world.ordered(`${query}&OnMissing=partial`))
    assert.equal(shown.state, 'partial', JSON.stringify(shown))
    line.isDown = false
    await world.isAnswering(device)
    return shown
  }

  async function filled(id: string): Promise<ShownExport> {
    const answer = await world.call(`/v1/exports/${id}/fill`, { method: 'POST' })
    assert.equal(answer.status, 202, answer.body.toString())
    return await world.ended(id)
  }

  for (const [compression, unpack] of Object.entries(UNPACK)) {
    test(`makes it what an undisturbed one is, ${compression}`, async () => {
      const before = await partial(`${WHOLE_RANGE}&Compression=${compression}`, 'west')
      assert.deepEqual(
        before.devices.map(({ missing }) => missing.length),
        [0, 0, 1],
      )
      const shown = await filled(before.id)
      assert.deepEqual([shown.state, shown.files.length], ['complete', 1], JSON.stringify(shown.error))
      const [input = Buffer.alloc(0)] = await world.files(shown)
      assert.equal(hash('sha256', input), shown.files[0]?.sha256)
      const direct = await world.directRange(WHOLE_RANGE)
      assert.ok(execFileSync(unpack, { input, maxBuffer: 2 ** 28 }).equals(direct))
      const manifest = (await world.call(`/v1/exports/${before.id}/manifest`)).json()
      assert.deepEqual([manifest.state, manifest.packets], ['complete', shown.files[0]?.packets])
      await world.isTidy()
    })
  }

  test('a device that comes before others has its packets among theirs, and none is lost or twice', async () => {
    const shown = await filled((await partial(`${WHOLE_RANGE}&TSResolution=usec`, 'east')).id)
    const [bytes = Buffer.alloc(0)] = await world.files(shown)
    const { records } = readPcap(bytes)
    const direct = readPcap(await world.directRange(`${WHOLE_RANGE}&TSResolution=usec`))
    for (const [index, { ns }] of records.entries())
      assert.ok(index === 0 || ns >= (records[index - 1]?.ns ?? 0n))
    assert.deepEqual(recordLines(records).sort(), recordLines(direct.records).sort())
  })

  test('rewrites only those files that have a hole', async () => {
    const half = EXPORT_BEGIN_NS + BigInt(EXPORT_SECONDS / 2) * 1_000_000_000n
    const query = `${WHOLE_RANGE}&PartTime=${EXPORT_SECONDS / 2}s&OnMissing=partial`
    const { line } = world.device('west')
    // The first part arrives, the second does not.
    line.refuses = (request) => BigInt(/[?&]TSBegin=(\d+)/.exec(request)?.[1] ?? 0) >= half
    const before = await world.ended(await world.ordered(query))
    assert.deepEqual([before.state, before.files.length], ['partial', 2])
    line.refuses = undefined
    const shown = await filled(before.id)
    assert.deepEqual([shown.state, shown.files.length], ['complete', 2], JSON.stringify(shown.error))
    assert.equal(shown.files[0]?.sha256, before.files[0]?.sha256)
    assert.notEqual(shown.files[1]?.name, before.files[1]?.name)
    const files = await world.files(shown)
    const [begin, end] = [
      String(EXPORT_BEGIN_NS),
      String(EXPORT_BEGIN_NS + BigInt(EXPORT_SECONDS) * 1_000_000_000n),
    ]
    for (const [index, [from, to]] of [
      [begin, half],
      [half, end],
    ].entries())
      assert.ok(
        files[index]?.equals(await world.directRange(`TSBegin=${from}&TSEnd=${to}`)),
        `part ${index + 1}`,
      )
  })

  test('cut by bytes, the parts are cut again', async () => {
    const shown = await filled((await partial(`${WHOLE_RANGE}&PartBytes=1048576`, 'west')).id)
    const parts = (await world.files(shown)).map((bytes) => readPcap(bytes).records)
    assert.ok(parts.length > 5)
    const direct = readPcap(await world.directRange(WHOLE_RANGE))
    assert.deepEqual(recordLines(parts.flat()), recordLines(direct.records))
  })

  test('takes turns of several workers, and is what an undisturbed one is', async () => {
    const { line } = world.device('west')
    const before = await partial(`${WHOLE_RANGE}&Compression=zstd`, 'west')
    const quarter = EXPORT_BEGIN_NS + BigInt(EXPORT_SECONDS / 4) * 1_000_000_000n
    // Two windows are fetched at a time, so the first one is whole before the last ones begin.
    line.hold(1_000_000)
    const answer = await world.call(`/v1/exports/${before.id}/fill`, { method: 'POST' })
    assert.equal(answer.status, 202, answer.body.toString())
    await world.until(before.id, ({ progress: { doneNs } }) => {
      const isDone = BigInt(doneNs ?? 0) > quarter
      if (!isDone) line.hold(100_000)
      return isDone
    })
    await worker[Symbol.asyncDispose]()
    line.release()
    worker = await startTempWorker(world.gateway)
    const shown = await world.ended(before.id)
    assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
    const [input = Buffer.alloc(0)] = await world.files(shown)
    const direct = await world.directRange(WHOLE_RANGE)
    assert.ok(execFileSync(UNPACK.zstd, { input, maxBuffer: 2 ** 28 }).equals(direct))
    await world.isTidy()
  })

  test('that fails, or is cancelled, leaves what there was', async () => {
    const before = await partial(WHOLE_RANGE, 'west')
    world.device('west').line.isDown = true
    const failed = await filled(before.id)
    assert.deepEqual(
      [failed.state, failed.files],
      ['partial', before.files.map((file, index) => failed.files[index] ?? file)],
    )
    world.device('west').line.hold(0)
    assert.equal((await world.call(`/v1/exports/${before.id}/fill`, { method: 'POST' })).status, 202)
    // While the export is being filled, its file may be read.
    assert.equal((await world.call(`/v1/exports/${before.id}/file`)).status, 200)
    assert.equal((await world.call(`/v1/exports/${before.id}`, { method: 'DELETE' })).status, 200)
    const cancelled = await world.shown(before.id)
    assert.deepEqual([cancelled.state, cancelled.files], ['partial', failed.files])
    assert.equal((await world.call(`/v1/exports/${before.id}/file`)).status, 200)
    await world.isTidy()
  })

  test('is refused where nothing is missing, and where a limit ended the file', async () => {
    const complete = await world.ended(await world.ordered(`${WHOLE_RANGE}&MaxPackets=5`))
    const limited = await partial(`${WHOLE_RANGE}&MaxPackets=5`, 'west')
    for (const id of [complete.id, limited.id]) {
      const answer = await world.call(`/v1/exports/${id}/fill`, { method: 'POST' })
      assert.deepEqual([answer.status, answer.json().code], [409, 'export-unfinished'])
    }
  })
})
