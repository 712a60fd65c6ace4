/**
 * Workers and Redis are killed, and workers are stopped for longer than they may be silent, while exports run. Each
 * export ends once, has the bytes of a direct download, and leaves nothing behind.
 *
 *   npm run exports -- 500   number of exports, with 300 kills of workers and 20 of Redis (60, 20 and 5 in npm test)
 *   SEED=<n>                 repeats the choice of events and orders, not their exact timing
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { describe, test } from 'node:test'
import { EXPORT_MANIFEST } from '../../../src/shared/contract/export-answers.ts'
import { eventually } from '../../support/eventually.ts'
import { EXPORT_BEGIN_NS, EXPORT_END_NS } from '../../support/exports/export-captures.ts'
import { ExportWorkerProcess, type WorkerFault } from '../../support/exports/export-worker-process.ts'
import {
  type Caller,
  ExportWorld,
  type ShownExport,
  WHOLE_RANGE,
} from '../../support/exports/export-world.ts'
import { leaseKeys } from '../../support/lease/lease-dump.ts'
import { pause } from '../../support/pause.ts'
import { FAST_TIMINGS } from '../../support/processes/temp-worker.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { TEST_LIMIT_MS, WAIT_LIMIT_MS } from '../../support/test-limits.ts'

const EXPORTS = Number(process.env.EXPORTS ?? 40)
const WORKER_KILLS = Number(process.env.WORKER_KILLS ?? 12)
const REDIS_KILLS = Number(process.env.REDIS_KILLS ?? 3)
const WORKERS = 3
const CAPTURE_BYTES = 4_000_000
/** So that fetching a span takes longer than killing a process. */
const LINE_BYTES_PER_SECOND = 6_000_000
/** Longer than a worker may be silent (FAST_TIMINGS.lockMs). */
const STOPPED_MS = FAST_TIMINGS.lockMs + 1_500
const EVENT_PAUSE_MS = [200, 1_200] as const
const ORDER_RETRY_MS = 200
const SECOND_NS = 1_000_000_000n
const MIDDLE_NS = EXPORT_BEGIN_NS + 30n * SECOND_NS
/** One in this many streams may have been a fifth one: it began just after another one had ended. */
const STREAMS_A_FIFTH = 200

/** The orders, and the direct downloads to compare with: one download for each file. */
const ORDERS: readonly (readonly [order: string, ...paths: string[]])[] = [
  [WHOLE_RANGE, range(WHOLE_RANGE)],
  [`${WHOLE_RANGE}&Device=east,west`, range(`${WHOLE_RANGE}&Device=east,west`)],
  [`${WHOLE_RANGE}&Device=north`, range(`${WHOLE_RANGE}&Device=north`)],
  [`${WHOLE_RANGE}&Slice=100`, range(`${WHOLE_RANGE}&Slice=100`)],
  [`${WHOLE_RANGE}&FilterBPF=greater+900`, range(`${WHOLE_RANGE}&FilterBPF=greater+900`)],
  [`${WHOLE_RANGE}&Dedup=2000`, range(`${WHOLE_RANGE}&Dedup=2000`)],
  ['StreamName=east', '/api/v1/pcap/single?StreamName=east'],
  [
    `${WHOLE_RANGE}&PartTime=30s`,
    range(`TSBegin=${EXPORT_BEGIN_NS}&TSEnd=${MIDDLE_NS}`),
    range(`TSBegin=${MIDDLE_NS}&TSEnd=${EXPORT_END_NS}`),
  ],
]

function range(query: string): string {
  return `/api/v1/pcap/timerange?${query}`
}

describe('exports whose workers and Redis are killed', {
  timeout: TEST_LIMIT_MS + EXPORTS * 3_000 + WORKER_KILLS * 5_000,
  concurrency: true,
}, () => {
  test(`${EXPORTS} exports, ${WORKER_KILLS} workers killed and some stopped, Redis killed ${REDIS_KILLS} times`, async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    await using run = await KillRun.start(random)
    await run.orderAndKill({ exports: EXPORTS, workerKills: WORKER_KILLS, redisKills: REDIS_KILLS })
    t.diagnostic(run.told())
    assert.deepEqual(await run.problems(), [])
  })

  test('negative control: a worker that continues where a file ends, not at its checkpoint, is detected', async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    await using run = await KillRun.start(random, { kind: 'end-of-file' })
    // Sooner or later a kill hits a file that extends beyond its checkpoint; only the test's own limit ends this loop.
    do await run.orderAndKill({ exports: 12, workerKills: 6, redisKills: 0, stops: 0 })
    while ((await run.problems()).length === 0)
  })
})

interface Ordered {
  readonly key: string
  readonly as: Caller
  readonly order: (typeof ORDERS)[number]
  id: string
  endedAt: unknown
}

interface Storm {
  readonly exports: number
  readonly workerKills: number
  readonly redisKills: number
  readonly stops?: number
}

class KillRun implements AsyncDisposable {
  readonly #world: ExportWorld
  readonly #workers: readonly ExportWorkerProcess[]
  readonly #random: SeededRandom
  readonly #owned: AsyncDisposableStack
  /** The bytes that a client would download. */
  readonly #hashes: ReadonlyMap<string, string>
  readonly #ordered: Ordered[] = []
  #forgotten = 0
  #startedMs = performance.now()

  private constructor(
    parts: {
      world: ExportWorld
      workers: readonly ExportWorkerProcess[]
      hashes: ReadonlyMap<string, string>
    },
    random: SeededRandom,
    owned: AsyncDisposableStack,
  ) {
    this.#world = parts.world
    this.#workers = parts.workers
    this.#hashes = parts.hashes
    this.#random = random
    this.#owned = owned
  }

  static async start(random: SeededRandom, fault?: WorkerFault): Promise<KillRun> {
    await using building = new AsyncDisposableStack()
    const folder = building.use(await tempFolder())
    const world = building.use(
      await ExportWorld.create({ captureBytes: CAPTURE_BYTES, exports: { perUserMax: 10_000 } }),
    )
    const hashes = new Map<string, string>()
    for (const [, ...paths] of ORDERS)
      for (const path of paths) hashes.set(path, sha256(await world.direct(path)))
    for (const { line } of world.devices) line.bytesPerSecond = LINE_BYTES_PER_SECOND
    const names = Array.from({ length: WORKERS }, (_, index) => `worker${index}`)
    const workers = await Promise.all(
      names.map((name) =>
        ExportWorkerProcess.start({
          gateway: world.gateway,
          folder: folder.path,
          name,
          ...(fault === undefined ? {} : { fault }),
        }),
      ),
    )
    for (const worker of workers) building.use(worker)
    return new KillRun({ world, workers, hashes }, random, building.move())
  }

  /** Places orders while processes are killed, and waits until all exports have ended. */
  async orderAndKill({
    exports,
    workerKills,
    redisKills,
    stops = Math.ceil(workerKills / 5),
  }: Storm): Promise<void> {
    const events = this.#shuffled([
      ...Array.from({ length: workerKills }, () => () => this.#killWorker()),
      ...Array.from({ length: redisKills }, () => () => this.#killRedis()),
      ...Array.from({ length: stops }, () => () => this.#stopWorker()),
    ])
    const stopped: Promise<void>[] = []
    let left = exports
    for (const [index, event] of events.entries()) {
      const now = Math.ceil(left / (events.length - index))
      await Promise.all(Array.from({ length: now }, () => this.#order()))
      left -= now
      await pause(this.#random.integer(...EVENT_PAUSE_MS), 'failures come at any moment')
      stopped.push(...(await event()))
    }
    await Promise.all(stopped)
    const limitMs = WAIT_LIMIT_MS + exports * 1_000
    for (const one of this.#ordered) await this.#ended(one, limitMs)
  }

  told(): string {
    const seconds = Math.round((performance.now() - this.#startedMs) / 100) / 10
    const refused = this.#world.devices.reduce((sum, { line }) => sum + line.refused, 0)
    return `${this.#ordered.length} exports in ${seconds} s; ${this.#forgotten} orders that Redis forgot; ${refused} refused readers`
  }

  /** What is wrong now that all exports have ended. */
  async problems(): Promise<readonly string[]> {
    const found: string[] = []
    for (const one of this.#ordered) found.push(...(await this.#problemsOf(one)))
    await this.#world.isTidy().catch((error: Error) => found.push(error.message))
    let leases: readonly string[] = []
    await eventually(
      async () => {
        leases = leaseKeys(await this.#world.redis.leftovers('capfleet'), 'capfleet')
        return leases.length === 0
      },
      { message: 'no lease is left' },
    ).catch((error: Error) => found.push(`${error.message}: ${leases.join(' ')}`))
    for (const { name, line } of this.#world.devices)
      if (line.refused > 2 + line.served / STREAMS_A_FIFTH)
        found.push(`${name}: ${line.refused} fifth readers`)
    const folders = await readdir(this.#world.target)
    const known = new Set(this.#ordered.map(({ id }) => id))
    const strange = folders.filter((name) => name !== '.work' && !known.has(name))
    if (strange.length > this.#forgotten) found.push(`unknown files: ${strange.join(' ')}`)
    return found
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync()
  }

  async #order(): Promise<void> {
    const order = this.#random.pick(ORDERS)
    const as = this.#random.pick(['user', 'full'] as const)
    const one: Ordered = { key: `order-${this.#ordered.length}`, as, order, id: '', endedAt: undefined }
    this.#ordered.push(one)
    await this.#orderAgain(one)
  }

  /** The key makes this the same order, however often it is sent. */
  async #orderAgain(one: Ordered): Promise<void> {
    for (;;) {
      const headers = { 'Idempotency-Key': one.key }
      const answer = await this.#world.order(one.order[0], { as: one.as, headers }).catch(() => undefined)
      if (answer?.status === 202) {
        one.id = String(answer.json().id)
        return
      }
      // A device may be late to answer whether a filter compiles while so many processes die and start.
      assert.ok(answer === undefined || [503, 504].includes(answer.status), answer?.body.toString())
      await pause(ORDER_RETRY_MS, 'Redis is away, an order is tried again')
    }
  }

  async #ended(one: Ordered, limitMs: number): Promise<void> {
    const endMs = performance.now() + limitMs
    for (;;) {
      const answer = await this.#world.call(`/v1/exports/${one.id}`, { as: one.as }).catch(() => undefined)
      if (answer?.status === 404) {
        this.#forgotten += 1
        await this.#orderAgain(one)
      }
      const { state, endedAt } = answer?.status === 200 ? answer.json() : {}
      if (endedAt !== null && endedAt !== undefined) {
        one.endedAt = endedAt
        return
      }
      if (performance.now() > endMs)
        throw new Error(
          `${one.id} (${one.order[0]}) is ${state} for ever: ${answer?.body}\n${await this.#logs()}`,
        )
      await pause(ORDER_RETRY_MS, 'Redis is away, an order is tried again')
    }
  }

  async #problemsOf({ id, as, order: [query, ...paths], endedAt }: Ordered): Promise<string[]> {
    const answer = await this.#world.call(`/v1/exports/${id}`, { as })
    const shown = answer.json() as unknown as ShownExport & { readonly endedAt: unknown }
    const problem = (text: string) => `${id} (${query}): ${text}`
    if (shown.state !== 'complete') return [problem(`${shown.state}: ${JSON.stringify(shown.error)}`)]
    const found: string[] = []
    if (shown.endedAt !== endedAt) found.push(problem('it ended twice'))
    const expected = paths.map((path) => this.#hashes.get(path))
    const told = shown.files.map(({ sha256: digest }) => digest)
    if (told.join() !== expected.join()) found.push(problem(`tells ${told} instead of ${expected}`))
    const folder = join(this.#world.target, id)
    const stored = await Promise.all(shown.files.map(({ name }) => sha256OfFile(join(folder, name))))
    if (stored.join() !== expected.join()) found.push(problem(`has ${stored} instead of ${expected}`))
    const names = [...shown.files.map(({ name }) => name), 'manifest.json'].sort()
    const there = (await readdir(folder)).sort()
    if (names.join() !== there.join()) found.push(problem(`its folder has ${there}`))
    const manifest = EXPORT_MANIFEST.safeParse(
      JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')),
    )
    if (!manifest.success) found.push(problem(`manifest: ${manifest.error.message}`))
    else if (JSON.stringify(manifest.data.files) !== JSON.stringify(shown.files))
      found.push(problem('manifest: other files'))
    return found
  }

  async #killWorker(): Promise<readonly Promise<void>[]> {
    const worker = this.#random.pick(this.#workers)
    await worker.signal('SIGKILL')
    return [worker.start()]
  }

  async #killRedis(): Promise<readonly Promise<void>[]> {
    const { redis } = this.#world
    await redis.stop('SIGKILL')
    await pause(this.#random.integer(0, 1_000), 'Redis stays away for some time')
    await redis.start()
    return []
  }

  /** Long enough that others take its jobs; then it continues as if nothing had happened. */
  async #stopWorker(): Promise<readonly Promise<void>[]> {
    const worker = this.#random.pick(this.#workers)
    await worker.signal('SIGSTOP')
    return [
      pause(STOPPED_MS, 'a worker stands still for longer than its lock holds').then(() =>
        worker.signal('SIGCONT'),
      ),
    ]
  }

  async #logs(): Promise<string> {
    const logs = await Promise.all(this.#workers.map((worker) => worker.log()))
    return logs.map((log) => log.slice(-4_000)).join('\n---\n')
  }

  #shuffled<Item>(items: readonly Item[]): Item[] {
    return items
      .map((item) => ({ item, place: this.#random.next() }))
      .sort((a, b) => a.place - b.place)
      .map(({ item }) => item)
  }
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash).catch((error: Error) => hash.update(error.message))
  return hash.digest('hex')
}
