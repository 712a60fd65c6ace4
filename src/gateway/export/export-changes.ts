/** Publishes changes of exports: one Redis connection for all followers. */
import type { Redis } from 'ioredis'
import type { Log } from '../../shared/base/log.ts'
import { connectRedis, type RedisTarget } from '../redis/redis-connection.ts'
import type { ExportStore } from './export-store.ts'

export interface ExportChangesOptions {
  readonly redis: RedisTarget
  readonly store: Pick<ExportStore, 'channel'>
  readonly log: Log
}

/** How long a record that was read after a change is reused for followers who ask slightly later. */
export const RECORD_KEPT_MS = 5_000

export class ExportChanges implements AsyncDisposable {
  readonly #options: ExportChangesOptions
  readonly #listeners = new Map<string, Set<() => void>>()
  #redis: Redis | undefined

  /** Connects once somebody follows an export. */
  constructor(options: ExportChangesOptions) {
    this.#options = options
  }

  /**
   * Calls `listener` when the export may have changed, including when Redis is reachable again, since a change may
   * have been missed. Dispose the result to stop following.
   */
  follow(id: string, listener: () => void): Disposable {
    this.#redis ??= this.#connect()
    const listeners = this.#listeners.get(id) ?? new Set()
    this.#listeners.set(id, listeners.add(listener))
    return {
      [Symbol.dispose]: () => {
        listeners.delete(listener)
        if (listeners.size === 0) this.#listeners.delete(id)
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#redis?.disconnect()
  }

  #connect(): Redis {
    const { redis: target, store, log } = this.#options
    const redis = connectRedis(target, 'messages', log)
    redis.on('message', (_channel, id) => this.#tell(id))
    redis.on('ready', () => {
      for (const id of this.#listeners.keys()) this.#tell(id)
    })
    redis.subscribe(store.channel).catch((error: Error) => {
      log.warn('export.follow-failed', { message: error.message })
    })
    return redis
  }

  #tell(id: string): void {
    for (const listener of this.#listeners.get(id) ?? []) listener()
  }
}
