import { type FSWatcher, watch } from 'node:fs'
import { type FileHandle, open, readFile, stat } from 'node:fs/promises'
import type { Log } from '../../src/shared/base/log.ts'
import { withoutStorePath } from '../request/hidden-path.ts'
import { EVENTS_NAME, type EventPaths, storePaths } from '../store/store-paths.ts'
import { type StoredEvent, storedEvents } from './stored-event.ts'

export interface EventFeedOptions {
  readonly storePath: string
  readonly log: Log
  /** Called once for each event that is written from now on. */
  readonly onEvent: (event: StoredEvent) => void
}

/** The recorder creates the store; until then there is nothing to watch. */
const MISSING_STORE_RETRY_MS = 1_000

/**
 * The events of a store as the recorder writes them: those in its files, then each new one. Reads when the kernel
 * reports a change of the file. Ends when disposed.
 */
export class EventFeed implements Disposable {
  readonly #options: EventFeedOptions
  readonly #paths: EventPaths
  readonly #listeners = new Set<() => void>()
  #watcher: FSWatcher | undefined
  #retry: NodeJS.Timeout | undefined
  #file: FileHandle | undefined
  /** Bytes of `#file` that have been read. */
  #offset = 0
  #older: readonly StoredEvent[] = []
  #newest: StoredEvent[] = []
  #reading: Promise<void> | undefined
  #isChanged = false
  #isStarted = false
  #isEnded = false

  private constructor(options: EventFeedOptions) {
    this.#options = options
    this.#paths = storePaths(options.storePath).events
  }

  static async open(options: EventFeedOptions): Promise<EventFeed> {
    const feed = new EventFeed(options)
    feed.#watch()
    // Opened before the older file, so that a switch of files in between loses nothing.
    feed.#file = await openIfThere(feed.#paths.newest)
    const older = storedEvents(await readFile(feed.#paths.older).catch(() => Buffer.alloc(0))).events
    feed.#older = older.map((event) => withoutPaths(event, options.storePath))
    await feed.refresh()
    feed.#isStarted = true
    return feed
  }

  /** Id of the newest event; 0 = there is none. */
  get newestId(): number {
    return (this.#newest.at(-1) ?? this.#older.at(-1))?.id ?? 0
  }

  /** The first event after `id` that still exists. */
  firstAfter(id: number): StoredEvent | undefined {
    return firstAfter(this.#older, id) ?? firstAfter(this.#newest, id)
  }

  /** All existing events, oldest first. */
  *kept(): Generator<StoredEvent, void> {
    yield* this.#older
    yield* this.#newest
  }

  /** Calls `listener` when there are new events, until disposed. */
  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener)
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) }
  }

  /** Reads what has been written so far. Never rejects. */
  refresh(): Promise<void> {
    this.#isChanged = true
    this.#reading ??= this.#readChanges().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  [Symbol.dispose](): void {
    this.#isEnded = true
    this.#watcher?.close()
    clearTimeout(this.#retry)
    this.#listeners.clear()
    void this.refresh()
  }

  #watch(): void {
    if (this.#isEnded) return
    try {
      this.#watcher = watch(this.#options.storePath, { persistent: false }, (_, name) => {
        if (name === EVENTS_NAME) void this.refresh()
      })
      this.#watcher.on('error', () => this.#watchLater())
    } catch {
      this.#watchLater()
    }
  }

  #watchLater(): void {
    this.#watcher?.close()
    this.#retry = setTimeout(() => {
      this.#watch()
      void this.refresh()
    }, MISSING_STORE_RETRY_MS).unref()
  }

  async #readChanges(): Promise<void> {
    while (this.#isChanged && !this.#isEnded) {
      this.#isChanged = false
      try {
        await this.#readFile()
      } catch (err) {
        this.#options.log.warn('events.read-failed', { err })
      }
    }
    if (!this.#isEnded) return
    await this.#file?.close()
    this.#file = undefined
  }

  /** Switches to a new file once the old one has been read completely: nobody writes to that any more. */
  async #readFile(): Promise<void> {
    this.#file ??= await openIfThere(this.#paths.newest)
    if (this.#file === undefined) return
    const isReplaced = await isOther(this.#file, this.#paths.newest)
    await this.#readLines(this.#file)
    if (!isReplaced) return
    await this.#file.close()
    this.#file = undefined
    this.#offset = 0
    this.#older = this.#newest
    this.#newest = []
    this.#isChanged = true
  }

  async #readLines(file: FileHandle): Promise<void> {
    const { size } = await file.stat()
    if (size <= this.#offset) return
    const bytes = Buffer.alloc(size - this.#offset)
    const { bytesRead } = await file.read(bytes, 0, bytes.length, this.#offset)
    const { events: stored, length } = storedEvents(bytes.subarray(0, bytesRead))
    const events = stored.map((event) => withoutPaths(event, this.#options.storePath))
    this.#offset += length
    if (events.length === 0) return
    this.#newest.push(...events)
    if (this.#isStarted) events.forEach(this.#options.onEvent)
    for (const listener of this.#listeners) listener()
  }
}

/** Details of the disk in the recorder's events are for the operator. */
function withoutPaths(event: StoredEvent, storePath: string): StoredEvent {
  const shown = Object.entries(event.data).map(([name, value]) => [
    name,
    typeof value === 'string' ? withoutStorePath(value, storePath) : value,
  ])
  return { ...event, data: Object.fromEntries(shown) as StoredEvent['data'] }
}

/** Ids are ascending. */
function firstAfter(events: readonly StoredEvent[], id: number): StoredEvent | undefined {
  let [low, high] = [0, events.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((events[middle]?.id ?? 0) > id) high = middle
    else low = middle + 1
  }
  return events[low]
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Whether the path now refers to another file than the open one. */
async function isOther(file: FileHandle, path: string): Promise<boolean> {
  const [mine, found] = await Promise.all([file.stat(), stat(path).catch(() => undefined)])
  return found !== undefined && found.ino !== mine.ino
}
