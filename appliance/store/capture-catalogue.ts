import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import { CapfleetError } from '../../src/base/error.ts'
import type { Log } from '../../src/base/log.ts'
import { nearestNames } from '../../src/query/nearest-names.ts'
import { quote } from '../../src/query/query-parameters.ts'
import { type AgedOutCapture, readAgedOut } from './aged-out-list.ts'
import { type CaptureRecord, captureRecordSchema } from './capture-record.ts'
import { GrowingCaptures } from './growing-captures.ts'
import { CAPTURE_RECORD_NAME, HIDDEN_PREFIX, type StorePaths } from './store-paths.ts'

/** The end of a full name after its base name: the start in the device's zone, and what keeps it unique. */
const FULL_NAME_ENDING = /_\d{8}_\d{4}(_\d+){0,2}$/
/** Files read at once: enough to keep a disk busy, few enough for any limit of open files. */
const READS_AT_ONCE = 32
/**
 * A folder's time stamp can be this coarse. Until it is older, a further change may leave it as it
 * is, and what was read cannot be trusted for ever.
 */
const MTIME_GRAIN_MS = 50
/** Whoever pages through the list goes on within seconds: so many do not go meanwhile. */
const GONE_MAX = 4_096

/** A consistent view of all captures. */
interface Snapshot {
  /** Newest first. */
  readonly records: readonly CaptureRecord[]
  readonly byName: ReadonlyMap<string, CaptureRecord>
  /** The newest capture of each base name. */
  readonly byBaseName: ReadonlyMap<string, CaptureRecord>
  readonly agedOut: readonly AgedOutCapture[]
}

/** What a place in the list depends on. */
type ListPlace = Pick<CaptureRecord, 'name' | 'startNs'>

export interface ListPart {
  /** How many captures of the list come before the part. */
  readonly before: number
  readonly records: readonly CaptureRecord[]
}

interface CachedRecord {
  readonly stamp: string
  readonly record: CaptureRecord
}

/**
 * What captures the store holds. The folder's time stamp tells whether something came or went, so
 * that a request costs one stat(2), with 10,000 captures too. Names of requests are looked up here
 * and never made into a path. Fails with store-unavailable when the store cannot be read.
 */
export class CaptureCatalogue {
  readonly #paths: StorePaths
  readonly #folder: string
  readonly #growing = new GrowingCaptures()
  readonly #log: Log
  /** The places of captures that this program has seen go. */
  readonly #gone = new LRUCache<string, ListPlace>({ max: GONE_MAX })
  #cache = new Map<string, CachedRecord>()
  #snapshot: Snapshot | undefined
  /** Folder time stamp that the snapshot belongs to; undefined = read again. */
  #stamp: string | undefined
  #refreshing: Promise<Snapshot> | undefined

  constructor(paths: StorePaths, log: Log) {
    this.#paths = paths
    this.#folder = paths.captures
    this.#log = log
  }

  /** All complete captures, newest first; of active ones what is flushed. */
  async list(): Promise<readonly CaptureRecord[]> {
    return await this.#allGrown((await this.#current()).records)
  }

  /**
   * The part of list() behind the capture of this full name, and how many captures come before that part.
   * A capture that has gone since it was listed still has its place in the order. Fails with
   * unknown-capture.
   */
  async listBehind(name: string): Promise<ListPart> {
    const { records, byName, agedOut } = await this.#current()
    const last = byName.get(name) ?? this.#gone.get(name) ?? agedOut.find((capture) => capture.name === name)
    if (last === undefined) throw unknownCapture(name, byName.keys())
    const behind = records.filter((record) => newestFirst(record, last) > 0)
    return { before: records.length - behind.length, records: await this.#allGrown(behind) }
  }

  /** The same as their records say: of active ones the finished segments alone. */
  async listFinished(): Promise<readonly CaptureRecord[]> {
    return (await this.#current()).records
  }

  /**
   * By full name, or by base name its newest capture. Fails with aged-out when everything of it was
   * removed, otherwise with unknown-capture and near names.
   */
  async find(name: string): Promise<CaptureRecord> {
    const { byName, byBaseName, agedOut } = await this.#current()
    const record = byName.get(name) ?? byBaseName.get(name)
    if (record !== undefined) return await this.#grown(record)
    const gone = agedOut.find((capture) => capture.name === name)
    throw gone === undefined ? unknownCapture(name, byName.keys()) : agedOutCapture(gone)
  }

  /** By full name only: for deleting. Fails with unknown-capture. */
  async findExact(name: string): Promise<CaptureRecord> {
    const { byName } = await this.#current()
    const record = byName.get(name)
    if (record === undefined) throw unknownCapture(name, byName.keys())
    return await this.#grown(record)
  }

  /** Captures that retention has removed as a whole, newest last; the oldest of them are forgotten. */
  async listAgedOut(): Promise<readonly AgedOutCapture[]> {
    return (await this.#current()).agedOut
  }

  /** The folder that holds the capture's segments. */
  folderOf(record: CaptureRecord): string {
    return join(this.#folder, record.name)
  }

  #remember({ name, startNs }: CaptureRecord): void {
    this.#gone.set(name, { name, startNs })
  }

  async #allGrown(records: readonly CaptureRecord[]): Promise<readonly CaptureRecord[]> {
    const active = records.filter(isActive)
    if (active.length === 0) return records
    const grown = await Promise.all(active.map((record) => this.#grown(record)))
    const byName = new Map(grown.map((record) => [record.name, record]))
    // The first packets of a capture may be older than its record says: what is listed must be in the order that it shows.
    return records.map((record) => byName.get(record.name) ?? record).toSorted(newestFirst)
  }

  async #grown(record: CaptureRecord): Promise<CaptureRecord> {
    return isActive(record) ? await this.#growing.measure(record, this.folderOf(record)) : record
  }

  async #current(): Promise<Snapshot> {
    try {
      const { mtimeNs } = await stat(this.#folder, { bigint: true })
      if (this.#snapshot !== undefined && this.#stamp === String(mtimeNs)) return this.#snapshot
      this.#refreshing ??= this.#refresh().finally(() => {
        this.#refreshing = undefined
      })
      return await this.#refreshing
    } catch (cause) {
      throw new CapfleetError('store-unavailable', `the store cannot be read: ${String(cause)}`, { cause })
    }
  }

  async #refresh(): Promise<Snapshot> {
    const readAtMs = Date.now()
    const { mtimeNs, mtimeMs } = await stat(this.#folder, { bigint: true })
    const names = (await readdir(this.#folder)).filter((name) => !name.startsWith(HIDDEN_PREFIX))
    const cache = new Map<string, CachedRecord>()
    const waiting = names.values()
    const reader = async (): Promise<void> => {
      for (const name of waiting) {
        const cached = await this.#read(name)
        if (cached) cache.set(name, cached)
      }
    }
    await Promise.all(Array.from({ length: READS_AT_ONCE }, reader))
    for (const { record } of this.#cache.values()) if (!cache.has(record.name)) this.#remember(record)
    this.#cache = cache
    const agedOut = await readAgedOut(this.#paths)
    this.#snapshot = { ...snapshotOf([...cache.values()].map(({ record }) => record)), agedOut }
    this.#stamp = readAtMs - Number(mtimeMs) > MTIME_GRAIN_MS ? String(mtimeNs) : undefined
    return this.#snapshot
  }

  /** undefined for what is no capture, or gone meanwhile. */
  async #read(name: string): Promise<CachedRecord | undefined> {
    const path = join(this.#folder, name, CAPTURE_RECORD_NAME)
    try {
      const { ino, mtimeNs } = await stat(path, { bigint: true })
      const stamp = `${ino} ${mtimeNs}`
      const cached = this.#cache.get(name)
      if (cached?.stamp === stamp) return cached
      const record = captureRecordSchema.parse(JSON.parse(await readFile(path, 'utf8')))
      if (record.name === name) return { stamp, record }
      this.#log.error('catalogue.wrong-name', { folder: name, name: record.name })
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#log.error('catalogue.unreadable', { capture: name, err })
      }
    }
    return undefined
  }
}

/** The name that the capture was started with; the full name of one whose name has no time at its end. */
export function baseNameOf({ baseName, name }: CaptureRecord): string {
  return baseName ?? name.replace(FULL_NAME_ENDING, '')
}

function isActive({ state }: CaptureRecord): boolean {
  return state === 'active'
}

function snapshotOf(unordered: readonly CaptureRecord[]): Omit<Snapshot, 'agedOut'> {
  const records = unordered.toSorted(newestFirst)
  const byBaseName = new Map<string, CaptureRecord>()
  for (const record of records) {
    const base = baseNameOf(record)
    if (base !== record.name && !byBaseName.has(base)) byBaseName.set(base, record)
  }
  return { records, byName: new Map(records.map((record) => [record.name, record])), byBaseName }
}

function newestFirst(a: ListPlace, b: ListPlace): number {
  if (a.startNs !== b.startNs) return a.startNs > b.startNs ? -1 : 1
  if (a.name === b.name) return 0
  return a.name < b.name ? -1 : 1
}

function agedOutCapture({ name, startNs, endNs }: AgedOutCapture): CapfleetError {
  return new CapfleetError(
    'aged-out',
    `${name} was removed to make room; it held packets from ${startNs} to ${endNs} ns`,
    { param: 'StreamName' },
  )
}

function unknownCapture(name: string, names: Iterable<string>): CapfleetError {
  const near = nearestNames(name, names)
  const hint = near.length === 0 ? '; /stream/list lists them' : `; did you mean ${near.join(', ')}?`
  return new CapfleetError('unknown-capture', `no capture is called ${quote(name)}${hint}`, {
    param: 'StreamName',
    members: { candidates: near },
  })
}
