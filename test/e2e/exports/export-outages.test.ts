// Exports whose disk, workers or Redis fail.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { jobPrefix, WRITE_QUEUE } from '../../../src/gateway/export/export-jobs.ts'
import { mountSmallDisk } from '../../support/disks/small-disk.ts'
import { eventually } from '../../support/eventually.ts'
import { ExportWorkerProcess, type WorkerFault } from '../../support/exports/export-worker-process.ts'
import { ExportWorld, type ShownExport, WHOLE_RANGE } from '../../support/exports/export-world.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const CAPTURE_BYTES = 4_000_000
/** Of each device: less than a span. */
const HELD_AFTER_BYTES = 500_000

describe('a full disk', () => {
  test('pauses an export, which continues when there is room', async (t) => {
    const disk = await mountSmallDisk(8_000_000)
    if (typeof disk === 'string') return t.skip(disk)
    await using _disk = disk
    await using world = await ExportWorld.create({ captureBytes: CAPTURE_BYTES, folder: disk.path })
    await using _worker = await startTempWorker(world.gateway)
    const id = await world.ordered(WHOLE_RANGE)
    const paused = await world.until(id, ({ state }) => state === 'paused')
    assert.equal(paused.error?.code, 'export-store-full')
    const remounted = spawnSync('mount', ['-o', 'remount,size=100000000', disk.path])
    assert.equal(remounted.status, 0)
    const shown = await world.ended(id)
    assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
    const [file] = await world.files(shown)
    assert.equal(sha256(file), sha256(await world.directRange(WHOLE_RANGE)))
    await world.isTidy()
  })

  test('that fills while spans are written parks nothing', async (t) => {
    const disk = await mountSmallDisk(60_000_000)
    if (typeof disk === 'string') return t.skip(disk)
    await using _disk = disk
    await using world = await ExportWorld.create({ captureBytes: CAPTURE_BYTES, folder: disk.path })
    await using _worker = await startTempWorker(world.gateway)
    world.hold(HELD_AFTER_BYTES)
    const id = await world.ordered(WHOLE_RANGE)
    await world.until(id, ({ progress }) => Number(progress.fetchedBytes) > 0)
    const used = spawnSync('df', ['--output=avail', '-B1', disk.path], { encoding: 'utf8' })
    const free = Number(used.stdout.trim().split('\n').at(-1))
    spawnSync('fallocate', ['-l', String(free), join(disk.path, 'ballast')])
    world.release()
    await world.until(id, ({ state }) => state === 'paused')
    spawnSync('rm', [join(disk.path, 'ballast')])
    const shown = await world.ended(id)
    assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
    const [file] = await world.files(shown)
    assert.equal(sha256(file), sha256(await world.directRange(WHOLE_RANGE)))
    await world.isTidy()
  })
})

describe('a worker', () => {
  test('that crashes on an export runs it alone, where it is parked, and others end meanwhile', async (t) => {
    await using world = await ExportWorld.create({ captureBytes: 1_500_000 })
    await using folder = await tempFolder()
    const fault = {
      kind: 'poison',
      idPath: join(folder.path, 'poison'),
      deathsPath: join(folder.path, 'deaths'),
    } as const
    const poison = await world.ordered('StreamName=north')
    await writeFile(fault.idPath, poison)
    await writeFile(fault.deathsPath, '')
    await using _workers = await keptWorkers(world, folder.path, fault)
    const others = [
      await world.ordered(`${WHOLE_RANGE}&Slice=64`),
      await world.ordered(`${WHOLE_RANGE}&Device=east`),
    ]
    for (const id of others) assert.equal((await world.ended(id)).state, 'complete')
    const shown = await world.ended(poison)
    assert.deepEqual([shown.state, shown.error?.code], ['failed', 'export-parked'])
    const deaths = (await readFile(fault.deathsPath, 'utf8')).length
    t.diagnostic(`${deaths} deaths`)
    assert.ok(deaths <= 5, `${deaths} deaths`)
  })
})

describe('a writer that no one saw stop', () => {
  test('keeps its file for itself, also when the next writer finds nothing to write', async () => {
    await using world = await ExportWorld.create({ captureBytes: CAPTURE_BYTES })
    await using folder = await tempFolder()
    const direct = sha256(await world.directRange(WHOLE_RANGE))
    const id = await world.ordered(WHOLE_RANGE)
    const redis = new Redis(world.redis.url)
    try {
      const key = `{capfleet}:export:job:${id}`
      await using worker = await startDying(world, folder.path, 1)
      await eventually(() => !worker.isRunning, { message: 'it has died with an open file' })
      const file = JSON.parse((await redis.hget(key, 'progress')) ?? '{}').openFile.path
      await redis.hset(key, 'writer', 'stopped for a while')
      await rm(join(world.spool, id), { recursive: true })
      for (const { line } of world.devices) line.isDown = true
      await worker.start()
      // The next writer has had its turn once its job waits for the devices.
      const waiting = `${jobPrefix('capfleet')}:${WRITE_QUEUE}:waiting-children`
      await eventually(
        async () =>
          (await redis.hget(key, 'writer')) !== 'stopped for a while' &&
          (await redis.zscore(waiting, id)) !== null,
        { message: 'the next writer waits' },
      )
      const [writer, progress] = await redis.hmget(key, 'writer', 'progress')
      const isReplaced = JSON.parse(progress ?? '{}').openFile.path !== file
      assert.ok(writer !== '' || isReplaced, 'the file of the one that may come back is handed over')
      for (const { line } of world.devices) line.isDown = false
      const shown = await world.ended(id)
      assert.deepEqual(
        [shown.state, shown.files[0]?.sha256],
        ['complete', direct],
        JSON.stringify(shown.error),
      )
    } finally {
      redis.disconnect()
    }
  })
})

describe('Redis that was set back', () => {
  test('to a file that has been replaced since restarts the export', async () => {
    await using world = await ExportWorld.create({ captureBytes: CAPTURE_BYTES })
    await using folder = await tempFolder()
    const direct = sha256(await world.directRange(WHOLE_RANGE))
    const id = await world.ordered(WHOLE_RANGE)
    const redis = new Redis(world.redis.url)
    try {
      const key = `{capfleet}:export:job:${id}`
      await using worker = await startDying(world, folder.path, 2)
      await eventually(() => !worker.isRunning, { message: 'it has died with an open file' })
      const old = await redis.hget(key, 'progress')
      const { path } = JSON.parse(old ?? '').openFile
      // No writer has passed its file on: the next one copies it.
      await redis.hset(key, 'writer', 'dead')
      await worker.start()
      await eventually(() => !worker.isRunning, { message: 'it has died with another file' })
      await assert.rejects(readFile(path), { code: 'ENOENT' })
      await redis.hset(key, 'progress', old ?? '')
      await worker.start()
      const shown = await world.ended(id)
      assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
      assert.deepEqual(
        shown.files.map(({ sha256: digest }: ShownExport['files'][number]) => digest),
        [direct],
      )
      await world.isTidy()
    } finally {
      redis.disconnect()
    }
  })
})

/** A worker that is killed as often when it has begun a file. */
async function startDying(
  world: ExportWorld,
  folder: string,
  deathsMax: number,
): Promise<ExportWorkerProcess> {
  const fault = { kind: 'open-file', begunPath: join(folder, 'begun'), deathsMax } as const
  await writeFile(fault.begunPath, '')
  return await ExportWorkerProcess.start({ gateway: world.gateway, folder, name: 'w', fault })
}

/** Two workers, which are restarted whenever they have died. */
async function keptWorkers(world: ExportWorld, folder: string, fault: WorkerFault): Promise<AsyncDisposable> {
  const workers = await Promise.all(
    ['a', 'b'].map((name) => ExportWorkerProcess.start({ gateway: world.gateway, folder, name, fault })),
  )
  const starting = setInterval(() => {
    for (const worker of workers) if (!worker.isRunning) void worker.start()
  }, 50)
  return {
    [Symbol.asyncDispose]: async () => {
      clearInterval(starting)
      for (const worker of workers) await worker[Symbol.asyncDispose]()
    },
  }
}

function sha256(bytes: Buffer | undefined): string {
  return createHash('sha256')
    .update(bytes ?? '')
    .digest('hex')
}
