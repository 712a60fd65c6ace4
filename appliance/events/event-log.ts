/**
 * What happened to the capture, for people and programs that watch a device: JSON lines in the store.
 * The recorder alone writes them; event-feed.ts reads them.
 */
import { constants } from 'node:fs'
import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { clockNs } from '../../native/addon.ts'
import type { Log } from '../../src/shared/base/log.ts'
import { type EventPaths, storePaths } from '../store/store-paths.ts'
import { type StoredEvent, storedEvents } from './stored-event.ts'

export const EVENT_KINDS = [
  'recorder-started',
  'capture-started',
  'capture-stopped',
  'capture-rolled',
  'capture-resumed',
  'capture-recovered',
  'capture-damaged',
  'capture-failed',
  'schedule-waiting',
  'packets-dropped',
  'port-down',
  'port-up',
  'disk-error',
  'disk-recovered',
  'clock-stepped',
  'clock-distrusted',
  'clock-trusted',
  'segment-removed',
  'capture-aged-out',
  'store-full',
  'retention-failed',
  'retention-recovered',
  'import-failed',
] as const
export type EventKind = (typeof EVENT_KINDS)[number]
export type EventFields = Readonly<Record<string, string | number | boolean>>

/** For those that only tell what happened. */
export type EventSink = Pick<EventLog, 'append'>

export interface EventLogOptions {
  readonly log: Log
  /** Size at which a file of events ends; the file before it is kept, older ones are not. */
  readonly fileBytes?: number
}

const FILE_BYTES = 2 * 2 ** 20
/** Events that wait for a disk that takes nothing; beyond that the oldest go. */
const WAITING_MAX = 1_000
const RETRY_MS = 1_000

/**
 * Appends events. Each has an id, ascending over restarts of the recorder, and names the one before
 * it: a reader sees by that what is missing. Writing goes on in the background and never fails its
 * caller: what the disk refuses is tried again. Owned by the recorder, whose store exists.
 */
export class EventLog implements AsyncDisposable {
  readonly #paths: EventPaths
  readonly #log: Log
  readonly #fileBytes: number
  /** Bytes of whole lines; what lies behind them was left by a crash, or by a write that failed. */
  #length = 0
  #file: FileHandle | undefined
  #lastId = 0
  /** The oldest first. */
  readonly #waiting: StoredEvent['data'][] = []
  /** Events that were given up since the last write. */
  #lost = 0
  /** Events that were given up since the disk began to refuse. */
  #lostWhileFailing = 0
  #writing: Promise<void> | undefined
  #retry: NodeJS.Timeout | undefined
  #isFailing = false

  constructor(storePath: string, options: EventLogOptions) {
    this.#paths = storePaths(storePath).events
    this.#log = options.log
    this.#fileBytes = options.fileBytes ?? FILE_BYTES
  }

  /** `fields` has neither TS nor Kind. */
  append(kind: EventKind, fields: EventFields): void {
    this.#waiting.push({ TS: String(clockNs()), Kind: kind, ...fields })
    if (this.#waiting.length > WAITING_MAX) {
      this.#waiting.shift()
      this.#lost += 1
      this.#lostWhileFailing += 1
    }
    if (!this.#isFailing) this.#write()
  }

  /** Writes what waits, if the disk takes it. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#retry)
    this.#write()
    await this.#writing
    clearTimeout(this.#retry)
    await this.#file?.close()
  }

  /** Begins to write what waits; one write at a time. */
  #write(): void {
    if (this.#waiting.length === 0) return
    this.#writing ??= this.#writeWaiting()
  }

  async #writeWaiting(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const file = await this.#openFile()
        await this.#writeFirst(file)
        if (this.#waiting.length === 0) await file.datasync()
      }
      this.#report(undefined)
    } catch (error) {
      this.#report(error)
      this.#retry = setTimeout(() => this.#write(), RETRY_MS).unref()
    } finally {
      this.#writing = undefined
    }
  }

  async #writeFirst(file: FileHandle): Promise<void> {
    const [data] = this.#waiting
    if (data === undefined) return
    const after = this.#lastId
    // By the clock, so that no id comes again when a power cut took the last lines, or the store is new.
    const id = Math.max(after + 1, Date.now())
    const event: StoredEvent = { id, after: after + this.#lost, data }
    await this.#writeLine(file, Buffer.from(`${JSON.stringify(event)}\n`))
    this.#lastId = id
    this.#lost = 0
    // It may have been pushed out meanwhile.
    if (this.#waiting[0] === data) this.#waiting.shift()
  }

  /** At a position, so that it goes over what is left of a line whose write failed. */
  async #writeLine(file: FileHandle, bytes: Buffer): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await file.write(bytes, done, bytes.length - done, this.#length + done)
      done += bytesWritten
    }
    this.#length += bytes.length
  }

  /** The file to write to; each step of going over to the next one can be tried again. */
  async #openFile(): Promise<FileHandle> {
    this.#file ??= await this.#openEnd()
    if (this.#length < this.#fileBytes) return this.#file
    await this.#file.close()
    this.#file = undefined
    await rename(this.#paths.newest, this.#paths.older)
    this.#file = await this.#openEnd()
    return this.#file
  }

  /** Cuts what a crash left of a line. */
  async #openEnd(): Promise<FileHandle> {
    const found = storedEvents(await readIfThere(this.#paths.newest))
    const older = storedEvents(await readIfThere(this.#paths.older))
    const file = await open(this.#paths.newest, constants.O_WRONLY | constants.O_CREAT, 0o640)
    await file.truncate(found.length)
    this.#length = found.length
    this.#lastId = Math.max(this.#lastId, (found.events.at(-1) ?? older.events.at(-1))?.id ?? 0)
    return file
  }

  /** Says once that the disk refuses, and once that it takes events again. */
  #report(error: unknown): void {
    const isFailing = error !== undefined
    if (isFailing && !this.#isFailing) this.#log.error('events.write-failed', { err: error })
    if (!isFailing && this.#isFailing)
      this.#log.info('events.written-again', { lost: this.#lostWhileFailing })
    if (!isFailing) this.#lostWhileFailing = 0
    this.#isFailing = isFailing
  }
}

async function readIfThere(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}
