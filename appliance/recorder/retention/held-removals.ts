import type { LogEntry } from '../../../native/segment-entry.ts'
import { portsOnDisk, segmentsOnDisk, sideBytesOf, sizeOfFile } from '../../store/segments-on-disk.ts'
import { segmentPath } from '../../store/store-paths.ts'
import { createdNs } from '../../store/stored-capture.ts'
import type { HeldCapture } from '../writer/held-capture.ts'
import type { StoreWriter } from '../writer/store-writer.ts'
import { type RemovableCapture, RemovalQueue } from './removal-queue.ts'
import type { UnnamedFiles } from './segment-remover.ts'

/** Feeds a removal queue from the recorder's captures in memory: a change costs the same in a store of any size. */
export class HeldRemovals implements Disposable {
  readonly queue = new RemovalQueue<LogEntry>()
  readonly #writer: StoreWriter
  readonly #unwatch: () => void
  /** Captures that are being recorded, and those without remaining segments. */
  readonly #active = new Set<HeldCapture>()
  readonly #emptied = new Map<string, HeldCapture>()
  /** The captures whose segments are in the queue. */
  readonly #queued = new Map<string, HeldCapture>()

  constructor(writer: StoreWriter) {
    this.#writer = writer
    this.#unwatch = writer.watch((name, capture) => this.#update(name, capture))
    for (const [name, capture] of writer.captures) this.#update(name, capture)
  }

  /** Resolves when every capture of the store is in the queue. Fails if the store cannot be read. */
  async refresh(): Promise<void> {
    await this.#writer.load()
  }

  /** Closed captures without segments. */
  get emptied(): readonly HeldCapture[] {
    return [...this.#emptied.values()]
  }

  /** The capture whose segments the queue has under this name. Ask when a segment is taken, not later. */
  queuedOf(name: string): HeldCapture | undefined {
    return this.#queued.get(name)
  }

  /** Bytes of segments that are being written. */
  async openBytes(): Promise<bigint> {
    let bytes = 0n
    for (const { folder, table } of this.#active) {
      for (const port of await portsOnDisk(folder)) {
        bytes += await openBytesOf(folder, port, table.portOf(port)?.lastNumber ?? 0)
      }
    }
    return bytes
  }

  /** Files whose removal had been logged when an earlier recorder ended before removing them. */
  async *leftovers(): AsyncGenerator<UnnamedFiles> {
    for (const capture of [...this.#writer.captures.values()]) {
      const { folder, table } = capture
      for (const port of table.removed === undefined ? [] : table.ports) {
        for (const place of await segmentsOnDisk(folder, port.port)) {
          if (place.number > port.lastNumber || port.find(place.number) !== undefined) continue
          const path = segmentPath(folder, port.port, place)
          yield { capture, path, bytes: await sizeOfAll(path) }
        }
      }
    }
  }

  [Symbol.dispose](): void {
    this.#unwatch()
  }

  #update(name: string, capture: HeldCapture | undefined): void {
    for (const active of this.#active) if (active.record.name === name) this.#active.delete(active)
    this.#emptied.delete(name)
    if (this.#queued.get(name) !== capture) {
      this.queue.delete(name)
      this.#queued.delete(name)
    }
    if (capture === undefined) return
    this.#queued.set(name, capture)
    if (capture.record.state === 'active') this.#active.add(capture)
    else if (capture.table.segments === 0) this.#emptied.set(name, capture)
    this.queue.update(removableOf(capture))
  }
}

function removableOf({ record, table }: HeldCapture): RemovableCapture<LogEntry> {
  return {
    name: record.name,
    createdNs: createdNs(record),
    isImport: record.type === 'import',
    isActive: record.state === 'active',
    ports: table.ports.map((port) => ({
      port: port.port,
      get newest() {
        return port.newest?.number ?? 0
      },
      after: (number) => port.after(number),
    })),
    heldBytes: table.storedBytes,
  }
}

async function openBytesOf(folder: string, port: number, lastNumber: number): Promise<bigint> {
  let bytes = 0n
  for (let number = lastNumber + 1; ; number++) {
    const found = await sizeOfAll(segmentPath(folder, port, { number, isFlat: false }))
    if (found === 0n) return bytes
    bytes += found
  }
}

async function sizeOfAll(path: string): Promise<bigint> {
  const [packets, side] = await Promise.all([sizeOfFile(`${path}.pcap`), sideBytesOf(path)])
  return BigInt(packets + side)
}
