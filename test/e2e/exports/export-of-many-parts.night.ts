// The cost in Redis of an export with many parts, and exports that an earlier version stored in another form.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { EventStream } from '../../support/clients/event-stream.ts'
import { EXPORT_BEGIN_NS } from '../../support/exports/export-captures.ts'
import { ExportWorld, type ShownExport, WHOLE_RANGE } from '../../support/exports/export-world.ts'
import { storeInFormerForm } from '../../support/exports/former-form.ts'
import { httpOpen } from '../../support/http-get.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'

const SECOND_NS = 1_000_000_000n
/** How much more a part may cost Redis with ten times as many parts; it used to be five times as much. */
const GROWTH_MAX = 1.5
const CAPTURE_BYTES = 4_000_000
/** Two spans of at most 1 MiB are fetched at a time, so the first one of a device is whole, and the last one is not. */
const HELD_AFTER_BYTES = 2_500_000

test('a part of 1,000 costs Redis no more than one of 100, to the writer and to who follows', async (t) => {
  await using world = await ExportWorld.create({ captureBytes: 500_000 })
  await using _worker = await startTempWorker(world.gateway)
  const redis = new Redis(world.redis.url)
  try {
    const few = await costOf(world, redis, 100)
    const many = await costOf(world, redis, 1_000)
    t.diagnostic(JSON.stringify({ few, many }))
    assert.ok(many.written < few.written * GROWTH_MAX, `${many.written} and ${few.written} bytes`)
    assert.ok(many.read < few.read * GROWTH_MAX, `${many.read} and ${few.read} bytes`)
  } finally {
    redis.disconnect()
  }
})

/** Bytes sent to and received from Redis per part, while a client follows the export. */
async function costOf(world: ExportWorld, redis: Redis, parts: number) {
  const endNs = EXPORT_BEGIN_NS + BigInt(parts) * SECOND_NS
  const range = `TSBegin=${EXPORT_BEGIN_NS}&TSEnd=${endNs}&Device=east`
  const before = await bytesOf(redis)
  const id = await world.ordered(`${range}&PartTime=1s`)
  const { url, as } = world.gateway
  using events = new EventStream(await httpOpen(`${url}/v1/exports/${id}/events`, { headers: as.user }))
  while ((await events.next()) !== undefined);
  const shown = await world.shown(id)
  assert.deepEqual([shown.state, shown.files.length], ['complete', parts])
  const now = await bytesOf(redis)
  return { written: (now.written - before.written) / parts, read: (now.read - before.read) / parts }
}

async function bytesOf(redis: Redis): Promise<{ readonly written: number; readonly read: number }> {
  const stats = await redis.info('stats')
  const figure = (name: string) => Number(new RegExp(`${name}:(\\d+)`).exec(stats)?.[1])
  return { written: figure('total_net_input_bytes'), read: figure('total_net_output_bytes') }
}

describe('an export that an earlier version has stored', () => {
  let world: ExportWorld
  let redis: Redis
  before(async () => {
    world = await ExportWorld.create({ captureBytes: CAPTURE_BYTES, exports: { deviceRetryS: 1 } })
    redis = new Redis(world.redis.url)
  })
  after(async () => {
    redis.disconnect()
    await world[Symbol.asyncDispose]()
  })

  const QUERY = `${WHOLE_RANGE}&PartTime=10s`

  /** The parts of an undisturbed export. */
  async function undisturbed(): Promise<readonly string[]> {
    const parts = Array.from({ length: 6 }, async (_, part) => {
      const beginNs = EXPORT_BEGIN_NS + 10n * BigInt(part) * SECOND_NS
      return await world.directRange(`TSBegin=${beginNs}&TSEnd=${beginNs + 10n * SECOND_NS}`)
    })
    return (await Promise.all(parts)).map((part) => part.toString('base64'))
  }

  async function filesOf(shown: ShownExport): Promise<readonly string[]> {
    return (await world.files(shown)).map((file) => file.toString('base64'))
  }

  async function partial(): Promise<ShownExport> {
    const { line } = world.device('west')
    line.isDown = true
    try {
      await using _worker = await startTempWorker(world.gateway)
      const shown = await world.ended(await world.ordered(`${QUERY}&OnMissing=partial`))
      assert.equal(shown.state, 'partial', JSON.stringify(shown.error))
      return shown
    } finally {
      line.isDown = false
    }
  }

  test('while it runs is continued, file by file', async () => {
    const { line } = world.device('west')
    line.hold(HELD_AFTER_BYTES)
    const id = await world.ordered(QUERY)
    {
      await using _worker = await startTempWorker(world.gateway)
      await world.until(id, ({ progress }) => Number(progress.writtenBytes) > 0)
    }
    line.release()
    await storeInFormerForm(redis, id)
    const before = await world.shown(id)
    assert.ok(Number(before.progress.writtenBytes) > 0 && before.state === 'running')
    await using _worker = await startTempWorker(world.gateway)
    const shown = await world.ended(id)
    assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
    assert.deepEqual(await filesOf(shown), await undisturbed())
    // Files that were written before are not written again.
    assert.equal(shown.progress.fetchedBytes, String(await fetchedAtOnce()))
  })

  /** What an uninterrupted export fetches. */
  async function fetchedAtOnce(): Promise<number> {
    const shown = await world.ended(await world.ordered(QUERY))
    return Number(shown.progress.fetchedBytes)
  }

  test('when it has ended has its files, and is filled', async () => {
    const ended = await partial()
    await storeInFormerForm(redis, ended.id)
    assert.deepEqual((await world.shown(ended.id)).files, ended.files)
    const part = await world.call(`/v1/exports/${ended.id}/file?Part=6`)
    assert.equal(part.status, 200)
    const list = await world.call('/v1/exports')
    const listed = (list.json().exports as unknown as readonly ShownExport[]).find(
      ({ id }) => id === ended.id,
    )
    assert.deepEqual(listed?.files, ended.files)
    await world.isAnswering('west')
    assert.equal((await world.call(`/v1/exports/${ended.id}/fill`, { method: 'POST' })).status, 202)
    assert.deepEqual((await world.shown(ended.id)).files, ended.files)
    await using _worker = await startTempWorker(world.gateway)
    const shown = await world.ended(ended.id)
    assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
    assert.deepEqual(await filesOf(shown), await undisturbed())
  })

  for (const end of ['continued', 'cancelled'] as const)
    test(`while its holes are filled is ${end}`, async () => {
      const ended = await partial()
      await world.isAnswering('west')
      const { line } = world.device('west')
      line.hold(HELD_AFTER_BYTES)
      assert.equal((await world.call(`/v1/exports/${ended.id}/fill`, { method: 'POST' })).status, 202)
      {
        await using _worker = await startTempWorker(world.gateway)
        await world.until(ended.id, ({ progress }) => Number(progress.writtenBytes) > 0)
      }
      line.release()
      await storeInFormerForm(redis, ended.id)
      assert.deepEqual((await world.shown(ended.id)).files, ended.files)
      if (end === 'cancelled') {
        const answer = await world.call(`/v1/exports/${ended.id}`, { method: 'DELETE' })
        assert.equal(answer.status, 200, answer.body.toString())
      }
      await using _worker = await startTempWorker(world.gateway)
      const shown = await world.ended(ended.id)
      if (end === 'cancelled') assert.deepEqual([shown.state, shown.files], ['partial', ended.files])
      else assert.deepEqual([shown.state, await filesOf(shown)], ['complete', await undisturbed()])
    })
})
