import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import { CapfleetError } from '../../src/shared/base/error.ts'
import type { Log } from '../../src/shared/base/log.ts'
import { nearestNames } from '../../src/shared/query/nearest-names.ts'
import { quote } from '../../src/shared/query/query-parameters.ts'
import { type AgedOutCapture, readAgedOut } from './aged-out-list.ts'
import type { CaptureRecord } from './capture-record.ts'
import { type JournalPosition, readChanges } from './change-journal.ts'
import { KnownCapture } from './known-capture.ts'
import { FULL_NAME_ENDING } from './read-capture.ts'
import { HIDDEN_PREFIX, type StorePaths } from './store-paths.ts'
import type { StoredCapture } from './stored-capture.ts'
import { isTemporary } from './temporary-errors.ts'

/** Number of captures read at the same time: enough to keep a disk busy, few enough for any limit of open files. */
const READS_AT_ONCE = 32
/**
 * Maximum granularity of a folder's time stamp. Until the stamp is older than this, a further change may not alter it,
 * so what was read cannot be trusted permanently.
 */
const MTIME_GRAIN_MS = 50
/** Clients page through the list within seconds; at most this many captures are removed in that time. */
const GONE_MAX = 4_096

/** A consistent view of all captures. */
interface Snapshot {
  /** All captures, newest first. */
  readonly captures: readonly KnownCapture[]
  readonly byName: ReadonlyMap<string, KnownCapture>
  /** The newest capture of each base name. */
  readonly byBaseName: ReadonlyMap<string, KnownCapture>
  readonly agedOut: readonly AgedOutCapture[]
}

/** The facts that a capture's place in the list depends on. */
type ListPlace = Pick<CaptureRecord, 'name' | 'startNs'>

export interface ListPart {
  /** How many captures of the list come before the part. */
  readonly before: number
  readonly captures: readonly StoredCapture[]
}

/**
 * Which captures the store holds, for its readers. A request costs two calls of stat(2), even with 10,000 captures: the
 * folder's time stamp shows whether captures were added or removed, and the recorder's journal which of them have
 * changed. Names in requests are looked up here and never turned into a path. Fails with store-unavailable if the store
 * cannot be read.
 */
export class CaptureCatalogue {
  readonly #paths: StorePaths
  readonly #folder: string
  readonly #log: Log
  /** The places of captures whose removal this program has seen. */
  readonly #gone = new LRUCache<string, ListPlace>({ max: GONE_MAX })
  #known = new Map<string, KnownCapture>()
  /** Names of folders that could not be read. No journal reports when they can be. */
  readonly #unreadable = new Set<string>()
  #snapshot: Snapshot | undefined
  /** Folder time stamp that the snapshot belongs to; undefined = the folder must be read again. */
  #stamp: string | undefined
  #journal: JournalPosition | undefined
  /** The read in progress, and the next one, which serves everyone who has asked meanwhile. */
  #looking: Promise<Snapshot> | undefined
  #lookingNext: Promise<Snapshot> | undefined

  constructor(paths: StorePaths, log: Log) {
    this.#paths = paths
    this.#folder = paths.captures
    this.#log = log
  }

  /** All complete captures, newest first; for active ones what is flushed. */
  async list(): Promise<readonly StoredCapture[]> {
    return await allGrown((await this.#current()).captures)
  }

  /**
   * The part of list() after the capture with this full name, and how many captures come before that part. A capture
   * that was removed after it was listed still has its place in the order. Fails with unknown-capture.
   */
  async listAfter(name: string): Promise<ListPart> {
    const { captures, byName, agedOut } = await this.#current()
    const last =
      byName.get(name)?.record ?? this.#gone.get(name) ?? agedOut.find((capture) => capture.name === name)
    if (last === undefined) throw unknownCapture(name, byName.keys())
    const after = captures.filter(({ record }) => newestFirst(record, last) > 0)
    return { before: captures.length - after.length, captures: await allGrown(after) }
  }

  /**
   * The capture with this full name, or the newest one with this base name. Fails with aged-out if all of it was
   * removed, otherwise with unknown-capture and similar names.
   */
  async find(name: string): Promise<StoredCapture> {
    const { byName, byBaseName, agedOut } = await this.#current()
    const capture = byName.get(name) ?? byBaseName.get(name)
    if (capture !== undefined) return await capture.grown()
    const gone = agedOut.find((one) => one.name === name)
    throw gone === undefined ? unknownCapture(name, byName.keys()) : agedOutCapture(gone)
  }

  /** The capture with this full name, for deleting. Fails with unknown-capture. */
  async findExact(name: string): Promise<StoredCapture> {
    const { byName } = await this.#current()
    const capture = byName.get(name)
    if (capture === undefined) throw unknownCapture(name, byName.keys())
    return await capture.grown()
  }

  /** Captures that retention has removed completely, newest last; the oldest of them are forgotten. */
  async listAgedOut(): Promise<readonly AgedOutCapture[]> {
    return (await this.#current()).agedOut
  }

  /** The folder that holds the capture's segments. */
  folderOf({ name }: Pick<CaptureRecord, 'name'>): string {
    return `${this.#folder}/${name}`
  }

  async #current(): Promise<Snapshot> {
    try {
      return await this.#lookNow()
    } catch (cause) {
      throw new CapfleetError('store-unavailable', `the store cannot be read: ${String(cause)}`, { cause })
    }
  }

  /** Begins after the call: a read in progress may have missed what the caller has just created. */
  #lookNow(): Promise<Snapshot> {
    const running = this.#looking
    if (running === undefined) {
      this.#looking = this.#look().finally(() => {
        this.#looking = undefined
      })
      return this.#looking
    }
    this.#lookingNext ??= running
      .catch(() => undefined)
      .then(() => {
        this.#lookingNext = undefined
        return this.#lookNow()
      })
    return this.#lookingNext
  }

  async #look(): Promise<Snapshot> {
    const { mtimeNs } = await stat(this.#folder, { bigint: true })
    const { position, changed } = await readChanges(this.#paths.changes, this.#journal)
    const isSame = this.#snapshot !== undefined && this.#stamp === String(mtimeNs)
    if (changed === 'unknown') await this.#lookAtAll('unknown')
    else {
      const mayDiffer = changed.union(this.#unreadable)
      if (!isSame) await this.#lookAtAll(mayDiffer)
      else if (mayDiffer.size > 0) await this.#lookAtSome(mayDiffer)
    }
    this.#journal = position
    this.#snapshot ??= await this.#newSnapshot()
    return this.#snapshot
  }

  /** Reads captures that were added or removed, and those named in `changed`. */
  async #lookAtAll(changed: ReadonlySet<string> | 'unknown'): Promise<void> {
    const readAtMs = Date.now()
    const { mtimeNs, mtimeMs } = await stat(this.#folder, { bigint: true })
    const names = (await readdir(this.#folder)).filter((name) => !name.startsWith(HIDDEN_PREFIX))
    const known = new Map<string, KnownCapture>()
    const waiting = names.values()
    const reader = async (): Promise<void> => {
      for (const name of waiting) {
        const before = this.#known.get(name)
        const isUntouched = before !== undefined && changed !== 'unknown' && !changed.has(name)
        const capture = isUntouched ? before : await this.#read(name, before)
        if (capture) known.set(name, capture)
      }
    }
    await Promise.all(Array.from({ length: READS_AT_ONCE }, reader))
    for (const { record } of this.#known.values()) if (!known.has(record.name)) this.#remember(record)
    this.#known = known
    this.#snapshot = undefined
    this.#stamp = readAtMs - Number(mtimeMs) > MTIME_GRAIN_MS ? String(mtimeNs) : undefined
  }

  /** The same captures as before, of which these have changed. */
  async #lookAtSome(changed: ReadonlySet<string>): Promise<void> {
    for (const name of changed) {
      const before = this.#known.get(name)
      const capture = await this.#read(name, before)
      // A capture that has appeared since changes the folder too, and is read then.
      if (before === undefined || capture === before) continue
      if (capture === undefined) this.#known.delete(name)
      else this.#known.set(name, capture)
      this.#snapshot = undefined
    }
  }

  async #newSnapshot(): Promise<Snapshot> {
    return { ...snapshotOf([...this.#known.values()]), agedOut: await readAgedOut(this.#paths) }
  }

  /**
   * undefined if the folder is not a capture, or was removed meanwhile. One that cannot be read is listed as damaged, so
   * that no range that may have packets of it looks complete. Fails with temporary errors.
   */
  async #read(name: string, before: KnownCapture | undefined): Promise<KnownCapture | undefined> {
    const folder = join(this.#folder, name)
    this.#unreadable.delete(name)
    try {
      const capture = await KnownCapture.read(folder, name, before)
      if (capture !== before) this.#report(name, capture?.problems ?? [])
      return capture
    } catch (error) {
      if (isTemporary(error)) throw error
      this.#unreadable.add(name)
      const capture = KnownCapture.unreadable(folder, name, String(error))
      if (before?.problems[0] !== capture.problems[0]) this.#report(name, capture.problems)
      return capture
    }
  }

  #report(capture: string, problems: readonly string[]): void {
    for (const problem of problems) this.#log.error('catalogue.damaged', { capture, problem })
  }

  #remember({ name, startNs }: CaptureRecord): void {
    this.#gone.set(name, { name, startNs })
  }
}

async function allGrown(captures: readonly KnownCapture[]): Promise<readonly StoredCapture[]> {
  const grown = new Map<KnownCapture, StoredCapture>()
  for (const capture of captures) if (capture.isActive) grown.set(capture, await capture.grown())
  const all = captures.map((capture) => grown.get(capture) ?? capture.finished)
  // The first packets of a capture may be older than its record says; a list must be in the order of the times that it
  // shows.
  return grown.size === 0 ? all : all.sort(newestFirst)
}

/** The name that the capture was started with, or the full name if that does not end with a time. */
export function baseNameOf({ baseName, name }: Pick<CaptureRecord, 'name' | 'baseName'>): string {
  return baseName ?? name.replace(FULL_NAME_ENDING, '')
}

function snapshotOf(unordered: readonly KnownCapture[]): Omit<Snapshot, 'agedOut'> {
  const captures = unordered.toSorted((a, b) => newestFirst(a.record, b.record))
  const byBaseName = new Map<string, KnownCapture>()
  for (const capture of captures) {
    const { name } = capture.record
    const base = baseNameOf(capture.record)
    if (base !== name && !byBaseName.has(base)) byBaseName.set(base, capture)
  }
  return { captures, byName: new Map(captures.map((capture) => [capture.record.name, capture])), byBaseName }
}

function newestFirst(a: ListPlace, b: ListPlace): number {
  if (a.startNs !== b.startNs) return a.startNs > b.startNs ? -1 : 1
  if (a.name === b.name) return 0
  return a.name < b.name ? -1 : 1
}

function agedOutCapture({ name, startNs, endNs }: AgedOutCapture): CapfleetError {
  return new CapfleetError(
    'aged-out',
    `${name} was removed by retention; it held packets from ${startNs} to ${endNs} ns`,
    { param: 'StreamName' },
  )
}

function unknownCapture(name: string, names: Iterable<string>): CapfleetError {
  const near = nearestNames(name, names)
  const hint = near.length === 0 ? '; /stream/list lists them' : `; did you mean ${near.join(', ')}?`
  return new CapfleetError('unknown-capture', `no capture is named ${quote(name)}${hint}`, {
    param: 'StreamName',
    members: { candidates: near },
  })
}
