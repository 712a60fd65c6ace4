/**
 * /api/v1/seen: when addresses were seen, from the tables, sieves and indexes of the store; with Verify=1 counted in
 * the packets themselves, which takes a download slot. Callers with a forced filter only get counts of packets that pass
 * it, and all packets of the range are read for them: neither spans nor the time that an answer takes reveal others.
 */
import type { AddressCount } from '../../native/address-counter.ts'
import { type SeenSpan, searchAddresses } from '../../native/address-search.ts'
import { givenParameters, takeParameters } from '../../src/shared/contract/request-parameters.ts'
import { SEEN_PARAMETERS, SEEN_RANGE } from '../../src/shared/contract/seen-parameters.ts'
import { sendTexts } from '../../src/shared/http/live-answer.ts'
import { readActivityRange } from '../../src/shared/query/download/query-range.ts'
import { packAddressList, packQuestions } from '../../src/shared/query/filter/address-list.ts'
import { badParameter } from '../../src/shared/query/query-parameters.ts'
import { type ApplianceContext, type ApplianceParts, nowNs } from '../appliance-parts.ts'
import type { CompileRequest } from '../compile/compile-queue.ts'
import { withLostMarked } from '../downloads/lost-segments.ts'
import { onHeld } from '../downloads/on-held.ts'
import type { Reader } from '../downloads/stream-limit.ts'
import { withClientSignal } from '../request/client-signal.ts'
import { untilFailed } from '../request/json-lines.ts'
import { callerOf, hasForcedFilter } from '../request/labelled-caller.ts'
import { agedOutBeforeNs } from '../store/removed-spans.ts'
import type { StoredCapture } from '../store/stored-capture.ts'
import { type CountedPart, type CountRequest, countPart, sumOfCounts } from './count-seen.ts'
import { addressLine, endLine, progressLine, spansWithin } from './seen-lines.ts'
import {
  allStreams,
  partsOf,
  type SearchedStreams,
  type SearchRange,
  streamsToSearch,
} from './seen-streams.ts'

interface SeenQuery extends SearchRange {
  /** The entries of the list, and their ranges in the same order. */
  readonly texts: readonly string[]
  readonly questions: Uint8Array
  /** The same as one set. */
  readonly addresses: Uint8Array
  readonly verify: boolean
  readonly verifyBytesMax: bigint
  readonly filterBpf: string | undefined
  /** Whether the filter hides packets from the caller. */
  readonly isForced: boolean
}

export async function answerSeen(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  parts.draining.throwIfAborted()
  const query = readQuery(ctx, parts)
  await withClientSignal(ctx, async (signal) => {
    const request = { caller: callerOf(ctx), signal }
    const store = new SeenStore(parts, query)
    const found = await store.find()
    const programs = await compilePrograms(parts, query, found.searched, request)
    using held = new DisposableStack()
    if (query.verify && ctx.method !== 'HEAD') held.use(await takeSlot(ctx, parts, query, signal))
    else held.use(await parts.searches.acquire(signal, request.caller.id))
    const search = query.isForced ? undefined : await store.search(found, signal)
    ctx.respond = false
    ctx.res.writeHead(200, { 'Content-Type': 'application/x-ndjson', 'Cache-Control': 'no-store' })
    if (ctx.method !== 'HEAD') {
      const count = { ...query, programs, readsAllBlocks: query.isForced, signal }
      const release = () => held.dispose()
      const lines = linesOf(store, { found, search, count: query.verify ? count : undefined, release })
      const revoked = ctx.state.caller?.revoked
      await sendTexts(ctx.res, () => untilFailed(lines, { log: parts.log, event: 'seen.failed' }), [
        parts.draining,
        ...(revoked === undefined ? [] : [revoked]),
      ])
    }
    ctx.res.end()
  })
}

function readQuery(ctx: ApplianceContext, { config }: ApplianceParts): SeenQuery {
  const values = takeParameters(ctx, { ...SEEN_RANGE, ...SEEN_PARAMETERS })
  const range = readActivityRange(givenParameters(ctx), { zone: config.timeZone, nowNs: nowNs() })
  const { texts, ranges } = packQuestions(values.addresses)
  if (values.filterBpf !== undefined && !values.verify)
    throw badParameter('FilterBPF', 'needs Verify=1, because only packets can be compared with a filter')
  const isForced = hasForcedFilter(ctx)
  if (isForced && !values.verify)
    throw badParameter(
      'Verify',
      'must be 1 for callers with a forced filter: times alone would reveal packets that it hides',
    )
  return {
    ...values,
    ...range,
    texts,
    questions: ranges,
    addresses: packAddressList(values.addresses),
    isForced,
  }
}

interface SearchedCaptures {
  readonly captures: readonly StoredCapture[]
  /** Their segments in the range. Of many segments a copy takes milliseconds. */
  readonly searched: SearchedStreams
}

interface FoundInStore extends SearchedCaptures {
  readonly agedOutBeforeNs: bigint | undefined
}

/** What the store has in the range. Segments may be removed between two calls. */
class SeenStore {
  readonly #parts
  readonly query

  constructor(parts: ApplianceParts, query: SeenQuery) {
    this.#parts = parts
    this.query = query
  }

  /** Fails with aged-out if nothing of the range is left, and with store-unavailable. */
  async find(range: SearchRange = this.query): Promise<FoundInStore> {
    const { catalogue } = this.#parts
    const [captures, agedOut] = [await catalogue.list(), await catalogue.listAgedOut()]
    return {
      captures,
      searched: streamsToSearch(captures, range, (capture) => catalogue.folderOf(capture)),
      agedOutBeforeNs: agedOutBeforeNs(range, { captures, agedOut }, this.query),
    }
  }

  /** The spans of each question in what was found, or in what is there now if a part of it was removed. */
  async search(found: FoundInStore, signal: AbortSignal): Promise<readonly (readonly SeenSpan[])[]> {
    const { beginNs, endNs, questions } = this.query
    const search = (streams: SearchedStreams) =>
      searchAddresses({ streams: allStreams(streams), beginNs, endNs, addresses: questions, signal })
    const { spans } = await this.#onHeld(this.query, search, found)
    return spans
  }

  count(part: SearchRange, request: CountRequest): Promise<CountedPart> {
    return this.#onHeld(part, (streams) => countPart(streams, part, request))
  }

  /** `known` is used once. */
  async #onHeld<Result>(
    range: SearchRange,
    work: (streams: SearchedStreams) => Promise<Result>,
    known?: SearchedCaptures,
  ): Promise<Result> {
    const { catalogue } = this.#parts
    const folderOf = catalogue.folderOf.bind(catalogue)
    const inCaptures = (captures: readonly StoredCapture[]): SearchedCaptures => ({
      captures,
      searched: streamsToSearch(captures, range, folderOf),
    })
    return await onHeld(
      async () => {
        const found = known ?? inCaptures(await catalogue.list())
        known = undefined
        return found
      },
      ({ searched }) => work(searched),
      async ({ captures }) =>
        inCaptures(await Promise.all(captures.map((capture) => withLostMarked(capture, folderOf(capture))))),
    )
  }
}

async function compilePrograms(
  { compiler }: ApplianceParts,
  { filterBpf }: SeenQuery,
  { byLinkType }: SearchedStreams,
  request: CompileRequest,
): Promise<ReadonlyMap<number, Uint8Array> | undefined> {
  if (filterBpf === undefined) return undefined
  const programs = new Map<number, Uint8Array>()
  for (const linkType of byLinkType.keys())
    programs.set(linkType, await compiler.compile({ expression: filterBpf, linkType }, request))
  return programs
}

async function takeSlot(
  ctx: ApplianceContext,
  { slots, draining }: ApplianceParts,
  { texts, beginNs, endNs, filterBpf }: SeenQuery,
  signal: AbortSignal,
): Promise<Disposable> {
  const reader: Reader = {
    mode: 'seen',
    commandLine: `${ctx.method} ${ctx.path}`,
    what: `${texts.length} addresses in ${beginNs}-${endNs}`,
    captures: [],
    filter: filterBpf,
    sliceBytes: undefined,
    user: ctx.state.caller?.name ?? '',
    follows: false,
    startedAt: new Date().toISOString(),
    bytes: 0n,
    totals: undefined,
  }
  return await slots.acquire(reader, { waitMs: 0, signal: AbortSignal.any([signal, draining]) })
}

interface SeenWork {
  readonly found: FoundInStore
  /** The spans of each question; undefined: everything is read. */
  readonly search: readonly (readonly SeenSpan[])[] | undefined
  /** undefined: nothing is read. */
  readonly count: CountRequest | undefined
  /** Called when nothing more is read: a client that reads its answer slowly must not take the place of others. */
  readonly release: () => void
}

async function* linesOf(
  store: SeenStore,
  { found, search, count, release }: SeenWork,
): AsyncGenerator<string> {
  const { query } = store
  const whole: readonly SeenSpan[] = [{ firstNs: query.beginNs, lastNs: query.endNs - 1n }]
  const spansOf = (question: number): readonly SeenSpan[] => search?.[question] ?? whole
  let counts: readonly AddressCount[] = []
  let [readBytes, isWhole] = [0n, true]
  let toldMs = Number.NEGATIVE_INFINITY
  /** The time from which no packet was counted. */
  let uncountedNs = count === undefined ? query.beginNs : query.endNs
  if (count !== undefined) {
    for (const part of partsOf(allStreams(found.searched), rangesOf(search?.flat() ?? whole))) {
      if (!query.isForced && readBytes >= query.verifyBytesMax) {
        isWhole = false
        uncountedNs = part.beginNs
        break
      }
      const counted = await store.count(part, count)
      counts = sumOfCounts(counts, counted.counts)
      readBytes += counted.readBytes
      if (counted.corruptBlocks > 0n) isWhole = false
      const nowMs = performance.now()
      // How much is stored is hidden from them too.
      if (query.isForced || nowMs - toldMs < PROGRESS_MS) continue
      toldMs = nowMs
      yield progressLine(readBytes)
    }
  }
  release()
  const rest = { beginNs: uncountedNs, endNs: query.endNs }
  for (const [question, address] of query.texts.entries()) {
    const spans = spansWithin(spansOf(question), rest)
    const counted = count === undefined ? undefined : (counts[question] ?? NOTHING)
    if (spans.length > 0 || (counted?.packets ?? 0n) > 0n) yield addressLine(address, spans, counted)
  }
  yield endLine({
    addresses: query.texts.length,
    complete: isWhole,
    agedOutBeforeNs: found.agedOutBeforeNs,
    // That there are such packets is hidden from callers with a filter.
    otherLinkTypes: query.isForced ? [] : found.searched.otherLinkTypes,
  })
}

/** Progress is for people; there may be thousands of short parts. */
const PROGRESS_MS = 1_000
const NOTHING: AddressCount = { packets: 0n, bytes: 0n, firstNs: 0n, lastNs: 0n }

/** The union of the spans, ascending and apart. */
function rangesOf(spans: readonly SeenSpan[]): readonly SearchRange[] {
  const ranges: { readonly beginNs: bigint; endNs: bigint }[] = []
  for (const { firstNs, lastNs } of spans.toSorted((a, b) => (a.firstNs < b.firstNs ? -1 : 1))) {
    const before = ranges.at(-1)
    if (before === undefined || firstNs > before.endNs) ranges.push({ beginNs: firstNs, endNs: lastNs + 1n })
    else if (lastNs >= before.endNs) before.endNs = lastNs + 1n
  }
  return ranges
}
