/**
 * Pages of the audit, the newest lines first: those of all chains in one order of time. A chain is read from its end
 * on, so that the newest page costs little; a page that nothing fits to ends when it has read enough.
 */
import type { AuditFile } from './audit-files.ts'
import { listChains } from './audit-files.ts'
import { linesBackwards } from './lines-backwards.ts'

/** A line of the audit. */
export interface AuditEntry extends Readonly<Record<string, unknown>> {
  readonly seq: number
  /** RFC 3339, UTC, with milliseconds. */
  readonly at: string
  readonly event: string
  readonly user: string | null
}

export interface AuditFilter {
  readonly user?: string | undefined
  /** An event, or all whose name begins so: "download" means "download.begin" and "download.end". */
  readonly event?: string | undefined
  readonly device?: string | undefined
  /** Half-open, in ms since 1970. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
}

export interface AuditPageRequest extends AuditFilter {
  readonly limit: number
  /** Whether the line is there for whoever asks. */
  readonly isVisible: (line: ChainEntry) => boolean
  /** Where the page before ended. */
  readonly after?: AuditPlace | undefined
  /** Whether somebody still waits for it. */
  readonly signal: AbortSignal
}

export interface AuditPage {
  readonly entries: readonly ChainEntry[]
  /** There may be more; undefined: there is not. A page may be short, or empty, and have a next one. */
  readonly next: AuditPlace | undefined
}

export interface ChainEntry {
  readonly chain: string
  readonly entry: AuditEntry
}

/** The line behind which a page goes on. */
export interface AuditPlace {
  /** The earliest time of all lines so far: a clock may have been set back between two lines of a chain. */
  readonly atMs: number
  readonly chain: string
  readonly seq: number
}

/** Looked at for one page. */
const LINES_MAX = 100_000
/** The clock of a process may be set back by so much: its lines need not be in the order of time. */
const CLOCK_SLACK_MS = 60_000

/** Fails as reading the folder does. */
export async function readAuditPage(folder: string, request: AuditPageRequest): Promise<AuditPage> {
  const { limit, after, fromMs = 0, toMs = Number.POSITIVE_INFINITY, signal } = request
  await using readers = new AsyncDisposableStack()
  const chains: ChainReader[] = []
  for (const [chain, files] of await listChains(folder)) {
    const reader = readers.use(new ChainReader(chain, files, { after, toMs }))
    await reader.start()
    chains.push(reader)
  }
  const entries: ChainEntry[] = []
  let place = after
  for (let looked = 0; looked < LINES_MAX && entries.length < limit; looked += 1) {
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

/** One chain, from its newest line on that is not on a page before. */
class ChainReader implements AsyncDisposable {
  readonly chain: string
  readonly #after: AuditPlace | undefined
  readonly #lines: AsyncGenerator<AuditEntry, void>
  /** The next line; undefined: there is none. */
  head: AuditEntry | undefined
  /** Its time; -Infinity: there is none. */
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

  /** Whether the line was on a page before. */
  #isShown(head: AuditEntry): boolean {
    if (this.#after === undefined) return false
    const { atMs, chain, seq } = this.#after
    if (this.chain === chain) return head.seq >= seq
    return this.headMs > atMs || (this.headMs === atMs && this.chain < chain)
  }
}

/** Of lines of the same time that of the chain whose name comes first. */
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
      // The files before this one have nothing that is later.
      search = undefined
    }
  }
}

function parseHead(text: string): LineHead {
  const [, seq, at = ''] = HEAD.exec(text) ?? []
  return { seq: Number(seq), atMs: Date.parse(at) }
}

/** A line that was altered is none; `capfleet audit verify` finds it. */
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
