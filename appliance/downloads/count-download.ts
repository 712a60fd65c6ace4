/**
 * /api/v1/pcap/count: exactly what a download with the same query would deliver, counted in the packets, which are not
 * sent. It is the same download, without compression, so that filters and limits have the same meaning. Callers with a
 * forced filter only get the result: neither progress nor a limit of bytes reveals how much their filter hides.
 */
import { addAbortListener } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Download, DownloadTotals } from '../../native/addon.ts'
import { givenParameters } from '../../src/shared/contract/request-parameters.ts'
import { sendTexts } from '../../src/shared/http/live-answer.ts'
import { COUNT_PARAMETERS, parseCountedQuery } from '../../src/shared/query/download/count-query.ts'
import { estimatedKind } from '../../src/shared/query/download/parse-download-query.ts'
import { ignoredNames } from '../../src/shared/query/ignored-names.ts'
import { readParameters } from '../../src/shared/query/read-parameters.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { withClientSignal } from '../request/client-signal.ts'
import { jsonLine, untilFailed } from '../request/json-lines.ts'
import { callerOf, hasForcedFilter } from '../request/labelled-caller.ts'
import { type CountedRange, countedRange } from './counted-range.ts'
import { onPrepared, openEngine, readerOf } from './open-download.ts'
import {
  type PreparedDownload,
  type PrepareRequest,
  parseContextOf,
  prepareDownload,
} from './prepare-download.ts'
import { damagedSegments } from './select-streams.ts'
import type { Reader } from './stream-limit.ts'

interface CountRequest extends PrepareRequest {
  readonly countBytesMax: bigint
}

/** Fails like the download before the first byte; a later failure is a line of the answer. */
export async function countDownload(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  parts.draining.throwIfAborted()
  await withClientSignal(ctx, async (signal) => {
    const given = givenParameters(ctx)
    const query = parseCountedQuery(estimatedKind(given), given, parseContextOf(parts))
    const { countBytesMax } = readParameters(COUNT_PARAMETERS, given)
    const request = { caller: callerOf(ctx), isForced: hasForcedFilter(ctx), signal, countBytesMax }
    const prepared = await prepareDownload(parts, query, request)
    if (ctx.method === 'HEAD') {
      sendHead(ctx, prepared)
      ctx.res.end()
      return
    }
    await answerCount(ctx, parts, { ...prepared, ...request })
  })
}

function sendHead(ctx: ApplianceContext, { query }: PreparedDownload): void {
  ctx.respond = false
  ctx.res.writeHead(200, {
    'Content-Type': 'application/x-ndjson',
    'Cache-Control': 'no-store',
    // Otherwise nginx buffers lines.
    'X-Accel-Buffering': 'no',
    ...(query.timeZone === undefined ? {} : { 'Capfleet-Time-Zone': query.timeZone }),
    ...(query.ignored.length === 0 ? {} : { 'Capfleet-Ignored': ignoredNames(query.ignored) }),
  })
}

async function answerCount(
  ctx: ApplianceContext,
  parts: ApplianceParts,
  prepared: PreparedDownload & CountRequest,
): Promise<void> {
  const { query, signal } = prepared
  const revoked = ctx.state.caller?.revoked
  const ends = [parts.draining, ...(revoked === undefined ? [] : [revoked])]
  const ending = AbortSignal.any([signal, ...ends])
  const reader = readerOf(prepared, ctx, 'count')
  using held = new DisposableStack()
  held.defer(() => void parts.damage.send())
  held.use(await parts.slots.acquire(reader, { waitMs: (query.waitS ?? 0) * 1000, signal: ending }))
  ending.throwIfAborted()
  const opened = await openCount(parts, prepared)
  const { engine } = opened
  reader.totals = () => engine.totals()
  held.defer(() => engine.close())
  ending.throwIfAborted()
  // From now on the slot is released as soon as no client waits for the count any more.
  const release = () => held.dispose()
  held.use(addAbortListener(ending, release))
  sendHead(ctx, prepared)
  const count = new RunningCount(opened, reader, release)
  await sendTexts(ctx.res, () => untilFailed(count.lines(), { log: parts.log, event: 'count.failed' }), ends)
  ctx.res.end()
  const outcome = count.result ?? (signal.aborted ? 'client-gone' : ending.aborted ? 'cut' : 'failed')
  const totals = engine.totals()
  parts.downloads.counted({ outcome, totals })
  parts.log.info('count.ended', {
    requestId: ctx.state.requestId,
    user: ctx.state.caller?.name,
    kind: query.kind,
    outcome,
    packets: String(totals.packets),
    checkedBytes: String(totals.readBytes),
  })
}

interface OpenedCount {
  readonly engine: Download
  /** undefined: everything is read, and nothing is said about how much that is. */
  readonly range: CountedRange | undefined
  readonly found: PreparedDownload
}

async function openCount(
  parts: ApplianceParts,
  prepared: PreparedDownload & CountRequest,
): Promise<OpenedCount> {
  const { isForced, signal, countBytesMax: bytesMax } = prepared
  return await onPrepared(parts, prepared, prepared, async (found) => {
    const { query, selection } = found
    const range = isForced ? undefined : await countedRange(selection.streams, query, { bytesMax, signal })
    const { endNs } = range ?? query
    return { engine: await openEngine({ ...found, query: { ...query, endNs } }, prepared), range, found }
  })
}

/** Progress is for people. */
const PROGRESS_MS = 1_000

class RunningCount {
  readonly #opened: OpenedCount
  readonly #reader: Reader
  readonly #release: () => void
  #result: 'complete' | 'incomplete' | undefined

  /** `release` is called when nothing more is read. */
  constructor(opened: OpenedCount, reader: Reader, release: () => void) {
    this.#opened = opened
    this.#reader = reader
    this.#release = release
  }

  /** undefined: it has not ended well. */
  get result(): 'complete' | 'incomplete' | undefined {
    return this.#result
  }

  async *lines(): AsyncGenerator<string> {
    const { engine, range } = this.#opened
    const drained = this.#drain()
    // It also fails if this is left early.
    drained.catch(() => undefined)
    if (range !== undefined)
      do yield jsonLine({ ...countedBy(engine.totals()), ...readOf(engine.totals(), range) })
      while (!(await endsWithin(drained, PROGRESS_MS)))
    await drained
    const totals = engine.totals()
    this.#release()
    yield this.#end(totals)
  }

  #end(totals: DownloadTotals): string {
    const { range, found } = this.#opened
    const { query, selection, agedOutBeforeNs } = found
    const isCut = range !== undefined && range.endNs < query.endNs
    const complete = !isCut && totals.corruptBlocks === 0n && damagedSegments(selection) === 0
    this.#result = complete ? 'complete' : 'incomplete'
    return jsonLine({
      end: true,
      ...countedBy(totals),
      complete,
      ...(isCut ? { countedToNs: String(range.endNs) } : {}),
      ...(range === undefined ? {} : readOf(totals, range)),
      corruptBlocks: String(totals.corruptBlocks),
      ...(agedOutBeforeNs === undefined ? {} : { agedOutBeforeNs: String(agedOutBeforeNs) }),
    })
  }

  async #drain(): Promise<void> {
    const { engine } = this.#opened
    for (let chunk = await engine.next(); chunk !== undefined; chunk = await engine.next()) {
      this.#reader.bytes += BigInt(chunk.bytes.length)
      chunk.release()
    }
  }
}

function countedBy({ packets, outputBytes }: DownloadTotals) {
  return { packets: String(packets), bytes: String(outputBytes) }
}

function readOf({ readBytes }: DownloadTotals, { rangeBytes }: CountedRange) {
  return { checkedBytes: String(readBytes), rangeBytes: String(rangeBytes) }
}

async function endsWithin(work: Promise<void>, ms: number): Promise<boolean> {
  const ending = new AbortController()
  try {
    return await Promise.race([work.then(() => true), delay(ms, false, { signal: ending.signal })])
  } finally {
    ending.abort()
  }
}
