/**
 * Pages of the audit, newest lines first, with all chains merged by time. A chain is read backwards, so the newest
 * page is cheap; a page without matches ends once it has read enough.
 */
import type { AuditFile } from './audit-files.ts'
import { listChains } from './audit-files.ts'
import { linesBackwards } from './lines-backwards.ts'

/** One line of the audit. */
export interface AuditEntry extends Readonly<Record<string, unknown>> {
  readonly seq: number
  /** Time of the event in RFC 3339, UTC, with milliseconds. */
  readonly at: string
  readonly event: string
  readonly user: string | null
}

export interface AuditFilter {
  readonly user?: string | undefined
  /** An event name or a prefix of names: "download" means "download.begin" and "download.end". */
  readonly event?: string | undefined
  readonly device?: string | undefined
  /** Half-open range, in ms since 1970. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
}

export interface AuditPageRequest extends AuditFilter {
  readonly limit: number
  /** Whether the caller is allowed to see the line. */
  readonly isVisible: (line: ChainEntry) => boolean
  /** Where the previous page ended. */
  readonly after?: AuditPlace | undefined
  /** Aborts when the caller is no longer waiting. */
  readonly signal: AbortSignal
  /** Maximum number of lines read. Default: LINES_MAX. */
  readonly linesMax?: number
}

export interface AuditPage {
  readonly entries: readonly ChainEntry[]
  /**
   * Where the next page begins, or undefined if there are no more lines. A page may be short or empty and still
   * have a next one.
   */
  readonly next: AuditPlace | undefined
}

export interface ChainEntry {
  readonly chain: string
  readonly entry: AuditEntry
}

/** The line after which the next page continues. */
export interface AuditPlace {
  /** The earliest time of all lines so far: a clock may have been set back between two lines of a chain. */
  readonly atMs: number
  readonly chain: string
  readonly seq: number
}

/** So many take about a second. */
const LINES_MAX = 100_000
/** How far a process's clock may be set back, so that its lines are not in time order. */
const CLOCK_SLACK_MS = 60_000

/** Fails with the errors of reading the folder. */
export async function readAuditPage(folder: string, request: AuditPageRequest): Promise<AuditPage> {
  const { limit, after, fromMs = 0, toMs = Number.POSITIVE_INFINITY, signal, linesMax = LINES_MAX } = request
  await using readers = new AsyncDisposableStack()
  const chains: ChainReader[] = []
  for (const [chain, files] of await listChains(folder)) {
    const reader = readers.use(new ChainReader(chain, files, { after, toMs }))
    await reader.start()
    chains.push(reader)
  }
  const entries: ChainEntry[] = []
  let place = after
  for (let looked = 0; looked < linesMax && entries.length < limit; looked += 1) {
    signal.throwIfAborted()
    const newest = newestOf(chains.filter(({ headMs }) => headMs >= fromMs - CLOCK_SLACK_MS))
    if (newest === undefined) return { entries, next: undefined }
    const { chain, head, headMs } = newest
    if (head === undefined) break
    place = { atMs: Math.min(place?.atMs ?? headMs, headMs), chain, seq: head.seq }
    const line = { chain, entry: head }
    if (fits(head, headMs, request) && request.isVisible(line)) entries.push(line)
    await newest.advance()
  }
  return { entries, next: place }
}

interface ReaderStart {
  readonly after: AuditPlace | undefined
  readonly toMs: number
}

/** Reads one chain, starting at the newest line that was not on a previous page. */
class ChainReader implements AsyncDisposable {
  readonly chain: string
  readonly #after: AuditPlace | undefined
  readonly #lines: AsyncGenerator<AuditEntry, void>
  /** The next line, or undefined if there are no more. */
  head: AuditEntry | undefined
  /** Time of `head`, or -Infinity if there are no more lines. */
  headMs = Number.NEGATIVE_INFINITY

  constructor(chain: string, files: readonly AuditFile[], { after, toMs }: ReaderStart) {
    this.chain = chain
    this.#after = after
    const latestMs = Math.min(toMs, after?.atMs ?? toMs) + CLOCK_SLACK_MS
    const isLater = ({ seq, atMs }: LineHead) => (after?.chain === chain ? seq >= after.seq : atMs > latestMs)
    this.#lines = entriesBackwards(files, isLater)
  }

  async start(): Promise<void> {
    await this.advance()
    while (this.head !== undefined && this.#isShown(this.head)) await this.advance()
  }

  async advance(): Promise<void> {
    const { value, done } = await this.#lines.next()
    this.head = done === true ? undefined : value
    this.headMs = this.head === undefined ? Number.NEGATIVE_INFINITY : Date.parse(this.head.at)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lines.return()
  }

  /** Whether the line was on a previous page. */
  #isShown(head: AuditEntry): boolean {
    if (this.#after === undefined) return false
    const { atMs, chain, seq } = this.#after
    if (this.chain === chain) return head.seq >= seq
    return this.headMs > atMs || (this.headMs === atMs && this.chain < chain)
  }
}

/** The reader with the newest line. For equal times, the chain whose name sorts first wins. */
function newestOf(chains: readonly ChainReader[]): ChainReader | undefined {
  let newest: ChainReader | undefined
  for (const reader of chains) if (newest === undefined || reader.headMs > newest.headMs) newest = reader
  return newest
}

interface LineHead {
  readonly seq: number
  readonly atMs: number
}

const HEAD = /^\{"seq":(\d+),"at":"([^"]+)"/

async function* entriesBackwards(
  files: readonly AuditFile[],
  isLater: ((head: LineHead) => boolean) | undefined,
): AsyncGenerator<AuditEntry, void> {
  let search = isLater && ((text: string) => isLater(parseHead(text)))
  for (const { path } of files.toReversed()) {
    for await (const { bytes } of linesBackwards(path, search)) {
      const entry = parseEntry(bytes.toString())
      if (entry === undefined) continue
      yield entry
      // Earlier files contain nothing later.
      search = undefined
    }
  }
}

function parseHead(text: string): LineHead {
  const [, seq, at = ''] = HEAD.exec(text) ?? []
  return { seq: Number(seq), atMs: Date.parse(at) }
}

/** Returns undefined for a line that is not valid; `capfleet audit verify` reports altered lines. */
function parseEntry(line: string): AuditEntry | undefined {
  try {
    const entry = JSON.parse(line) as AuditEntry
    return Number.isNaN(Date.parse(entry.at)) || !Number.isInteger(entry.seq) ? undefined : entry
  } catch {
    return undefined
  }
}

function fits(entry: AuditEntry, atMs: number, filter: AuditFilter): boolean {
  const { user, event, device, fromMs = 0, toMs = Number.POSITIVE_INFINITY } = filter
  if (atMs < fromMs || atMs >= toMs) return false
  if (user !== undefined && entry.user !== user) return false
  if (event !== undefined && entry.event !== event && !String(entry.event).startsWith(`${event}.`))
    return false
  return device === undefined || (Array.isArray(entry.devices) && entry.devices.includes(device))
}
