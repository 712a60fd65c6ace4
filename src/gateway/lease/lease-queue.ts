import type { Redis } from 'ioredis'
import type { DeviceUse, QueueRow } from './lease.ts'
import { schedulerUnavailable } from './lease-failure.ts'
import type { LeaseScripts } from './lease-scripts.ts'

/** Longest list that queue() returns. */
const ROWS_MOST = 1_000
const ROWS_A_SCRIPT = 100
const DEVICES_A_SCRIPT = 250
const IDS_A_PAGE = 1_000

/** Lists holders and waiters, across all replicas. Read-only, and none of its scripts runs long. */
export class LeaseQueue {
  readonly #redis: Redis
  readonly #scripts: LeaseScripts
  readonly #prefix: string
  readonly #replica: string

  constructor(options: {
    readonly redis: Redis
    readonly scripts: LeaseScripts
    readonly keyPrefix: string
    readonly replica: string
  }) {
    this.#redis = options.redis
    this.#scripts = options.scripts
    this.#prefix = `{${options.keyPrefix}}`
    this.#replica = options.replica
  }

  /** Streams in use and waiters of each device, in the given order. */
  use(devices: readonly string[]): Promise<readonly DeviceUse[]> {
    return available(async () => {
      const parts: Promise<readonly DeviceUse[]>[] = []
      for (let from = 0; from < devices.length; from += DEVICES_A_SCRIPT)
        parts.push(this.#scripts.counts(devices.slice(from, from + DEVICES_A_SCRIPT)))
      return (await Promise.all(parts)).flat()
    })
  }

  /** Oldest first; if there are very many, only the oldest. */
  list(): Promise<readonly QueueRow[]> {
    return available(async () => this.#rows(await this.#oldestIds()))
  }

  places(ids: readonly string[]): Promise<readonly QueueRow[]> {
    return available(() => this.#rows(ids))
  }

  /** All requests of this replica that Redis knows. */
  async ownIds(): Promise<readonly string[]> {
    const ids: string[] = []
    for (;;) {
      const page = await this.#ownPage(this.#replica, ids.length)
      ids.push(...page)
      if (page.length < IDS_A_PAGE) return ids
    }
  }

  async #rows(ids: readonly string[]): Promise<readonly QueueRow[]> {
    const rows: QueueRow[] = []
    for (let from = 0; from < ids.length; from += ROWS_A_SCRIPT) {
      rows.push(...(await this.#scripts.places(ids.slice(from, from + ROWS_A_SCRIPT))))
    }
    return rows
  }

  async #oldestIds(): Promise<readonly string[]> {
    const [alive, lapsed] = await Promise.all([
      this.#redis.zrange(`${this.#prefix}:hb`, '0', '-1'),
      this.#redis.zrange(`${this.#prefix}:lapsed`, '0', '-1'),
    ])
    const replicas = [...new Set([...alive, ...lapsed])]
    const pages = await Promise.all(
      replicas.map((replica) =>
        this.#redis.zrange(this.#ownKey(replica), '0', String(ROWS_MOST - 1), 'WITHSCORES'),
      ),
    )
    return pages
      .flatMap(pairsOf)
      .sort((a, b) => a.seq - b.seq)
      .slice(0, ROWS_MOST)
      .map(({ id }) => id)
  }

  #ownPage(replica: string, from: number): Promise<string[]> {
    return this.#redis.zrange(this.#ownKey(replica), String(from), String(from + IDS_A_PAGE - 1))
  }

  #ownKey(replica: string): string {
    return `${this.#prefix}:own:${replica}`
  }
}

async function available<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask()
  } catch (cause) {
    throw schedulerUnavailable(cause)
  }
}

/** Parses ["id", "score", "id", ...]. */
function pairsOf(page: readonly string[]): { readonly id: string; readonly seq: number }[] {
  const pairs: { readonly id: string; readonly seq: number }[] = []
  for (let i = 0; i < page.length; i += 2) pairs.push({ id: page[i] ?? '', seq: Number(page[i + 1]) })
  return pairs
}
