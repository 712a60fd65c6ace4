/** A store with retention, like the recorder's, for tests that decide when retention runs. */
import { join } from 'node:path'
import type { RetentionSettings } from '../../../appliance/appliance-config.ts'
import type { EventKind } from '../../../appliance/events/event-log.ts'
import { Retention } from '../../../appliance/recorder/retention/retention.ts'
import { StoreWriter } from '../../../appliance/recorder/writer/store-writer.ts'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import { createLog } from '../../../src/shared/base/log.ts'

export interface KeeperOptions {
  readonly storePath: string
  readonly settings: Partial<RetentionSettings>
  readonly segmentBytes?: number
  readonly nowNs?: () => bigint
  /** The write rate that a capture reports. */
  readonly bytesPerSecond?: number
}

export interface RecordedEvent {
  readonly kind: EventKind
  readonly fields: Readonly<Record<string, string | number | boolean>>
}

export class StoreKeeper implements AsyncDisposable {
  readonly writer: StoreWriter
  readonly retention: Retention
  readonly events: readonly RecordedEvent[]

  private constructor(writer: StoreWriter, retention: Retention, events: readonly RecordedEvent[]) {
    this.writer = writer
    this.retention = retention
    this.events = events
  }

  /** Resolves after the first check for free space. */
  static async open(options: KeeperOptions): Promise<StoreKeeper> {
    const { storePath, settings, segmentBytes, nowNs, bytesPerSecond = 0 } = options
    const events: RecordedEvent[] = []
    const clockNs = nowNs ?? (() => BigInt(Date.now()) * 1_000_000n)
    const writer = await StoreWriter.open(storePath, { segmentBytes })
    const retention = Retention.begin({
      writer,
      paths: storePaths(storePath),
      settings: { maxBytes: 0, minFreeBytes: 0, maxAgeMs: 0, onFull: 'roll', pinMs: 30_000, ...settings },
      events: { append: (kind, fields) => void events.push({ kind, fields }) },
      ages: {
        isAged: (storedNs, maxAgeMs) => storedNs < clockNs() - BigInt(maxAgeMs) * 1_000_000n,
      },
      bytesPerSecond: () => bytesPerSecond,
      log: createLog('test', 'silent'),
    })
    const keeper = new StoreKeeper(writer, retention, events)
    await keeper.collect()
    return keeper
  }

  /** Runs retention now, and waits for it. */
  async collect(): Promise<void> {
    await this.retention.makeRoom(0n)
  }

  kinds(): EventKind[] {
    return this.events.map(({ kind }) => kind)
  }

  folderOf(storePath: string, capture: string): string {
    return join(storePaths(storePath).captures, capture)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.retention[Symbol.asyncDispose]()
    await this.writer[Symbol.asyncDispose]()
  }
}
