/**
 * Events of the capture, for people and programs that watch a device: JSON lines in the store. Only the recorder
 * writes them; event-feed.ts reads them.
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

/** The part of an event log that code uses which only reports events. */
export type EventSink = Pick<EventLog, 'append'>

export interface EventLogOptions {
  readonly log: Log
  /** Size at which an event file ends; the previous file is kept, older ones are not. */
  readonly fileBytes?: number
}

const FILE_BYTES = 2 * 2 ** 20
/** Maximum number of events waiting for a disk that accepts nothing; beyond that the oldest are dropped. */
const WAITING_MAX = 1_000
const RETRY_MS = 1_000

/**
 * Appends events. Each has an id, ascending across restarts of the recorder, and names its predecessor, so that a
 * reader detects missing ones. Writing continues in the background and never fails its caller; it is retried if the
 * disk refuses. Owned by the recorder, whose store exists.
 */
export class EventLog implements AsyncDisposable {
  readonly #paths: EventPaths
  readonly #log: Log
  readonly #fileBytes: number
  /** Bytes of complete lines; anything after them was left by a crash, or by a failed write. */
  #length = 0
  #file: FileHandle | undefined
  #lastId = 0
  /** Oldest first. */
  readonly #waiting: StoredEvent['data'][] = []
  /** Number of events dropped since the last write. */
  #lost = 0
  /** Number of events dropped since the disk began to refuse. */
  #lostWhileFailing = 0
  #writing: Promise<void> | undefined
  #retry: NodeJS.Timeout | undefined
  #isFailing = false

  constructor(storePath: string, options: EventLogOptions) {
    this.#paths = storePaths(storePath).events
    this.#log = options.log
    this.#fileBytes = options.fileBytes ?? FILE_BYTES
  }

  /** `fields` contains neither TS nor Kind. */
  append(kind: EventKind, fields: EventFields): void {
    this.#waiting.push({ TS: String(clockNs()), Kind: kind, ...fields })
    if (this.#waiting.length > WAITING_MAX) {
      this.#waiting.shift()
      this.#lost += 1
      this.#lostWhileFailing += 1
    }
    if (!this.#isFailing) this.#write()
  }

  /** Writes what is waiting, if the disk accepts it. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#retry)
    this.#write()
    await this.#writing
    clearTimeout(this.#retry)
    await this.#file?.close()
  }

  /** Starts to write what is waiting; one write at a time. */
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
    // Based on the clock, so that no id is reused if a power cut lost the last lines, or the store is new.
    const id = Math.max(after + 1, Date.now())
    const event: StoredEvent = { id, after: after + this.#lost, data }
    await this.#writeLine(file, Buffer.from(`${JSON.stringify(event)}\n`))
    this.#lastId = id
    this.#lost = 0
    // It may have been dropped meanwhile.
    if (this.#waiting[0] === data) this.#waiting.shift()
  }

  /** At a position, so that it overwrites what is left of a line whose write failed. */
  async #writeLine(file: FileHandle, bytes: Buffer): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await file.write(bytes, done, bytes.length - done, this.#length + done)
      done += bytesWritten
    }
    this.#length += bytes.length
  }

  /** The file to write to; each step of switching to the next one can be retried. */
  async #openFile(): Promise<FileHandle> {
    this.#file ??= await this.#openEnd()
    if (this.#length < this.#fileBytes) return this.#file
    await this.#file.close()
    this.#file = undefined
    await rename(this.#paths.newest, this.#paths.older)
    this.#file = await this.#openEnd()
    return this.#file
  }

  /** Cuts off an incomplete line left by a crash. */
  async #openEnd(): Promise<FileHandle> {
    const found = storedEvents(await readIfThere(this.#paths.newest))
    const older = storedEvents(await readIfThere(this.#paths.older))
    const file = await open(this.#paths.newest, constants.O_WRONLY | constants.O_CREAT, 0o640)
    await file.truncate(found.length)
    this.#length = found.length
    this.#lastId = Math.max(this.#lastId, (found.events.at(-1) ?? older.events.at(-1))?.id ?? 0)
    return file
  }

  /** Logs once that the disk refuses, and once that it accepts events again. */
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
