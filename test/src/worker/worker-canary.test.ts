// A worker whose queue accepts no more jobs, although everything looks healthy.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Queue } from 'bullmq'
import { ExportStore } from '../../../src/gateway/export/export-store.ts'
import { connectRedis } from '../../../src/gateway/redis/redis-connection.ts'
import { Metrics } from '../../../src/shared/base/metrics.ts'
import { WorkerCanary } from '../../../src/worker/worker-canary.ts'
import { WorkingQueue } from '../../../src/worker/working-queue.ts'
import { eventually } from '../../support/eventually.ts'
import { SILENT_LOG } from '../../support/lease/lease-user.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { TRUSTED_TIME } from '../../support/trusted-time.ts'

const CANARY_MS = 100
const LIMIT = { message: 'the jobs are done' }

interface Watched extends AsyncDisposable {
  readonly queue: Queue
  readonly taken: WorkingQueue<number>
  readonly store: ExportStore
  /** The names of the jobs that were run. */
  readonly done: readonly number[]
  replacements(): Promise<number>
}

/** A silent worker never takes a job, until its queue is replaced. */
async function watchedQueue({ isSilent }: { readonly isSilent: boolean }): Promise<Watched> {
  // A worker that takes jobs must not count as silent because the machine is busy.
  const silentMs = isSilent ? 2_000 : 600_000
  await using building = new AsyncDisposableStack()
  const redis = building.use(await TempRedis.create())
  const connection = connectRedis({ url: redis.url }, 'blocking', SILENT_LOG)
  building.defer(async () => connection.disconnect())
  const store = building.use(
    new ExportStore({ redis: { url: redis.url }, keyPrefix: 'test', log: SILENT_LOG }),
  )
  const queue = building.adopt(new Queue('work', { connection }), (one) => one.close())
  const done: number[] = []
  const run = async (job: { readonly data: number }) => {
    done.push(job.data)
    return 'done' as const
  }
  const worker = { connection, concurrency: 2 }
  const taken = new WorkingQueue<number>({ queue: 'work', worker, run, clock: TRUSTED_TIME, log: SILENT_LOG })
  building.defer(() => taken.close())
  if (!isSilent) taken.start()
  const metrics = new Metrics()
  const canary = new WorkerCanary({
    workers: store.workers,
    log: SILENT_LOG,
    metrics,
    name: 'here',
    timings: { canaryMs: CANARY_MS, silentMs },
    watched: [{ queue, taken }],
    restore: async () => undefined,
  })
  building.use(canary)
  await canary.start()
  const replacements = async () => {
    const text = await metrics.text()
    return Number(/export_worker_replacements_total\{queue="work"\} (\d+)/.exec(text)?.[1] ?? 0)
  }
  const owned = building.move()
  return { queue, taken, store, done, replacements, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

describe('a worker of a queue', () => {
  test('that went silent is replaced, and the jobs that waited are done', async () => {
    await using watched = await watchedQueue({ isSilent: true })
    for (const number of [1, 2, 3]) await watched.queue.add('some', number)
    await eventually(() => watched.done.length === 3, LIMIT)
    assert.deepEqual(watched.done.toSorted(), [1, 2, 3])
    assert.ok((await watched.replacements()) >= 1)
  })

  test('that takes jobs is left alone, even if there are only canaries', async () => {
    await using watched = await watchedQueue({ isSilent: false })
    let [idleMs, falls] = [0, 0]
    const hasTakenCanaries = () => {
      const nowMs = watched.taken.idleMs
      if (nowMs < idleMs) falls += 1
      idleMs = nowMs
      return falls >= 5
    }
    await eventually(hasTakenCanaries, { message: 'it has taken five canaries' })
    assert.equal(await watched.replacements(), 0)
    await watched.queue.add('some', 7)
    await eventually(() => watched.done.length === 1, LIMIT)
  })

  test('is counted while its canaries go out', async () => {
    await using watched = await watchedQueue({ isSilent: false })
    assert.equal(await watched.store.workers.count(), 1)
  })
})
