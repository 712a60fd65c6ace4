// When a worker shuts down, another one resumes its exports at once, and this does not count as a worker's death.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { FETCH_QUEUE, jobPrefix } from '../../../src/gateway/export/export-jobs.ts'
import { type RunningWorker, startWorker } from '../../../src/worker/worker.ts'
import { eventually } from '../../support/eventually.ts'
import { ExportWorld, WHOLE_RANGE } from '../../support/exports/export-world.ts'
import { httpGet } from '../../support/http-get.ts'

const CAPTURE_BYTES = 3_000_000
/** Of each device: so little that no span ends while a worker hands over. */
const FIRST_BYTES = 500_000
/** What comes then: more than the other worker fetches again. */
const MORE_BYTES = 1_500_000

describe('a worker that is asked to end', () => {
  /** With production timings: a dead worker would be noticed much later than this test lasts. */
  async function start({ gateway }: ExportWorld): Promise<RunningWorker & AsyncDisposable> {
    const { config, configPath } = gateway
    const worker = { ...config.exports.worker, listen: { ...config.exports.worker.listen, port: 0 } }
    const running = await startWorker(
      { ...config, logLevel: 'silent', exports: { ...config.exports, worker } },
      { configPath },
    )
    return { ...running, [Symbol.asyncDispose]: () => running.close() }
  }

  test('hands its exports over at once, and nothing is counted against them', async (t) => {
    await using world = await ExportWorld.create({ captureBytes: CAPTURE_BYTES })
    const direct = hashOf(await world.directRange(WHOLE_RANGE))
    world.hold(FIRST_BYTES)
    await using first = await start(world)
    const id = await world.ordered(WHOLE_RANGE)
    const fetched = async () => Number((await world.shown(id)).progress.fetchedBytes)
    await eventually(async () => (await fetched()) > 0, { message: 'it is fetched' })
    await using _second = await start(world)
    const told = performance.now()
    let isClosed = false
    const closed = first.close().then(() => {
      isClosed = true
    })
    const ready = await httpGet(`${first.url}/readyz`).catch(() => undefined)
    assert.ok(ready === undefined || ready.status === 503)
    await eventually(() => isClosed, { message: 'the first worker ends, and waits for none of its spans' })
    await closed
    const closedMs = performance.now() - told
    const before = await fetched()
    world.hold(MORE_BYTES)
    await eventually(async () => (await fetched()) > before, { message: 'the other worker goes on' })
    t.diagnostic(`ended in ${Math.round(closedMs)} ms, gone on in ${Math.round(performance.now() - told)} ms`)
    for (const job of await fetchJobs(world)) {
      const { count = 0 } = (JSON.parse(job.data ?? '{}') as { deaths?: { count: number } }).deaths ?? {}
      assert.deepEqual([count, job.stc ?? '0'], [0, '0'])
    }
    world.release()
    const shown = await world.ended(id)
    assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
    const [file] = await world.files(shown)
    assert.equal(hashOf(file), direct)
  })

  async function fetchJobs(world: ExportWorld): Promise<readonly Record<string, string>[]> {
    const keys = (await world.jobKeys()).filter((key) =>
      key.startsWith(`${jobPrefix('capfleet')}:${FETCH_QUEUE}:`),
    )
    const redis = new Redis(world.redis.url)
    try {
      const jobs: Record<string, string>[] = []
      for (const key of keys) if ((await redis.type(key)) === 'hash') jobs.push(await redis.hgetall(key))
      assert.ok(jobs.length > 0)
      return jobs
    } finally {
      redis.disconnect()
    }
  }
})

function hashOf(bytes: Buffer | undefined): string {
  return createHash('sha256')
    .update(bytes ?? '')
    .digest('hex')
}
