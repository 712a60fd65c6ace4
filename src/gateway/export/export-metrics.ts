/** Metrics of all exports, across all workers: read from Redis before each scrape. */
import { statfs } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Metrics } from '../../shared/base/metrics.ts'
import type { ExportParts } from './export-parts.ts'
import { type ExportState, LIVE_STATES } from './export-record.ts'
import type { ExportStore } from './export-store.ts'
import type { KnownWorkers } from './known-workers.ts'

interface LiveExports {
  readonly count: number
  readonly oldestMs: number | undefined
}

/** While Redis is unreachable the last values remain; scheduler_reachable shows it. */
export function publishExports(
  store: Pick<ExportStore, 'liveStates'> & { readonly workers: Pick<KnownWorkers, 'count'> },
  isReachable: () => boolean,
  metrics: Metrics,
): void {
  let byState: ReadonlyMap<ExportState, LiveExports> | undefined
  let workers: number | undefined
  metrics.figures('exports', 'Exports that have not ended, by state', ['state'], (set) => {
    for (const [state, { count }] of byState ?? []) set(count, { state })
  })
  metrics.figures(
    'exports_oldest_timestamp_seconds',
    'When the oldest export that has not ended was ordered, by state',
    ['state'],
    (set) => {
      for (const [state, { oldestMs }] of byState ?? [])
        if (oldestMs !== undefined) set(oldestMs / 1_000, { state })
    },
  )
  metrics.figures('export_workers', 'Workers that have sent a heartbeat recently', [], (set) => {
    if (workers !== undefined) set(workers)
  })
  metrics.beforeText(async () => {
    if (!isReachable()) return
    const found = await Promise.all([store.liveStates(), store.workers.count()]).catch(() => undefined)
    if (found === undefined) return
    byState = new Map(LIVE_STATES.map((state) => [state, liveOf(found[0], state)]))
    workers = found[1]
  })
}

function liveOf(all: Awaited<ReturnType<ExportStore['liveStates']>>, state: ExportState): LiveExports {
  const ofState = all.filter((one) => one.state === state)
  const created = ofState.map(({ createdMs }) => createdMs)
  return { count: ofState.length, oldestMs: created.length === 0 ? undefined : Math.min(...created) }
}

/** Free space where exports are made and kept; unknown for a bucket. */
export function publishRoom(
  { spool, targets }: Pick<ExportParts, 'spool' | 'targets'>,
  metrics: Metrics,
): void {
  let free: readonly (readonly [place: string, bytes: bigint])[] = []
  metrics.figures(
    'export_free_bytes',
    'Free space in the spool (spool) and in each target that is a folder (target:NAME)',
    ['place'],
    (set) => {
      for (const [place, bytes] of free) set(Number(bytes), { place })
    },
  )
  const ask = async () => {
    const asked = [
      ['spool', freeBytesOf(spool.path)] as const,
      ...[...targets.values()].map((target) => [`target:${target.name}`, target.freeBytes()] as const),
    ]
    // A place that cannot be read has no value.
    const told = await Promise.all(
      asked.map(async ([place, bytes]) => [place, await bytes.catch(() => undefined)] as const),
    )
    free = told.flatMap(([place, bytes]) => (bytes === undefined ? [] : [[place, bytes] as const]))
  }
  let asking: Promise<void> | undefined
  metrics.beforeText(async () => {
    // A network disk may never respond: the other metrics must not wait for it, nor may requests to it pile up.
    free = []
    asking ??= ask().finally(() => {
      asking = undefined
    })
    await Promise.race([asking, delay(ROOM_LIMIT_MS, undefined, { ref: false })])
  })
}

const ROOM_LIMIT_MS = 500

/** Free bytes in the file system of a folder. */
export async function freeBytesOf(folder: string): Promise<bigint> {
  const { bavail, bsize } = await statfs(folder, { bigint: true })
  return bavail * bsize
}
