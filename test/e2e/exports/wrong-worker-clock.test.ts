// The clock of the only worker jumps (libfaketime): while it runs, at its start, and between its starts.
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { WORKER_TIMINGS } from '../../../src/worker/worker-timings.ts'
import { eventually } from '../../support/eventually.ts'
import { ExportWorkerProcess } from '../../support/exports/export-worker-process.ts'
import { ExportWorld, WHOLE_RANGE } from '../../support/exports/export-world.ts'
import { httpGet } from '../../support/http-get.ts'
import { CLOCK_JUMPS, FakedClock, WITHOUT_FAKETIME } from '../../support/processes/faked-clock.ts'
import { type TempFolder, tempFolder } from '../../support/temp-folder.ts'

/** Less than the smallest jump, and longer than the test takes. */
const KEPT_S = 3_000
const LIMIT_MS = 120_000

describe('a worker whose clock jumps', { skip: WITHOUT_FAKETIME }, () => {
  let folder: TempFolder
  let world: ExportWorld
  let clock: FakedClock
  let worker: ExportWorkerProcess
  let redis: Redis
  /** The folder of a complete export, and a schedule without runs. */
  let exported: string
  let scheduled: string

  before(async () => {
    folder = await tempFolder()
    clock = await FakedClock.create(folder.path)
    world = await ExportWorld.create({ captureBytes: 100_000, exports: { keepS: KEPT_S } })
    redis = new Redis(world.redis.url)
    const { gateway } = world
    worker = await ExportWorkerProcess.start({
      gateway,
      folder: folder.path,
      name: 'worker',
      environment: clock.environment,
      timings: { ...WORKER_TIMINGS, upkeepMs: 500 },
    })
    exported = await world.ordered(WHOLE_RANGE)
    assert.equal((await world.ended(exported)).state, 'complete')
    // Not within the time of this test, but within an hour and a half.
    const inAnHour = new Date(Date.now() + 3_500_000)
    const cron = encodeURIComponent(`${inAnHour.getUTCMinutes()} ${inAnHour.getUTCHours()} * * *`)
    const schedule = await world.call(`/v1/schedules?Cron=${cron}&CronZone=UTC&TSBegin=-1h&TSEnd=now`, {
      method: 'POST',
    })
    assert.equal(schedule.status, 201, schedule.body.toString())
    scheduled = String(schedule.json().id)
  })
  after(async () => {
    redis?.disconnect()
    await worker?.[Symbol.asyncDispose]()
    await world?.[Symbol.asyncDispose]()
    await folder?.[Symbol.asyncDispose]()
  })

  async function trusts(expected: 0 | 1): Promise<void> {
    const line = new RegExp(`^capfleet_shared_clock_trusted ${expected}$`, 'm')
    await eventually(async () => line.test((await httpGet(`${worker.url}/metrics`)).body.toString()), {
      limitMs: LIMIT_MS,
      message: `the worker trusts its clock: ${expected}`,
    })
  }

  /** Two more heartbeats: the first may have begun before. */
  async function sweep(): Promise<void> {
    const sweeps = async () => Number(await redis.get('{capfleet}:export:sweeps'))
    const first = await sweeps()
    await eventually(async () => (await sweeps()) >= first + 2, { limitMs: LIMIT_MS, message: 'a sweep' })
  }

  async function nothingHappened(when: string): Promise<void> {
    await sweep()
    const shown = await world.shown(exported)
    assert.equal(shown.state, 'complete', when)
    const files = await readdir(join(world.target, exported))
    assert.deepEqual(
      shown.files.filter(({ name }) => !files.includes(name)),
      [],
      when,
    )
    const { lastExportId, nextAt } = (await world.call(`/v1/schedules/${scheduled}`)).json()
    assert.equal(lastExportId, null, when)
    assert.ok(Date.parse(String(nextAt)) - Date.now() < 3_600_000, when)
  }

  for (const { name, jumpS } of CLOCK_JUMPS)
    test(`by ${name} expires no export, takes no run, and still makes exports`, async () => {
      await clock.set(jumpS)
      await trusts(0)
      await nothingHappened('while it runs')
      const meanwhile = await world.ordered(WHOLE_RANGE)
      const ended = await world.ended(meanwhile)
      assert.equal(ended.state, 'complete', JSON.stringify(ended.error))
      const { endedAt, expiresAt } = (await world.call(`/v1/exports/${meanwhile}`)).json()
      assert.ok(Math.abs(Date.parse(String(endedAt)) - Date.now()) < LIMIT_MS, String(endedAt))
      assert.equal(Date.parse(String(expiresAt)) - Date.parse(String(endedAt)), KEPT_S * 1_000)
      await worker.signal('SIGKILL')
      await worker.start()
      await trusts(0)
      await nothingHappened('at its start')
      // What a user deletes is removed all the same.
      await world.call(`/v1/exports/${meanwhile}`, { method: 'DELETE' })
      await eventually(async () => !(await readdir(world.target)).includes(meanwhile), {
        limitMs: LIMIT_MS,
        message: 'the export is removed',
      })
      await clock.set(0)
      await trusts(1)
      await nothingHappened('when it is back')
    })
})
