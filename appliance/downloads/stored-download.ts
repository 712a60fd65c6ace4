/**
 * The downloads single, timerange and splittime. Everything that can be wrong is detected before a slot is taken, and
 * the engine has begun before the status is sent.
 */
import { addAbortListener } from 'node:events'
import { type Chunk, Download } from '../../native/addon.ts'
import type { DownloadOptions } from '../../native/download-options.ts'
import { givenParameters } from '../../src/shared/contract/request-parameters.ts'
import { refuseLaterRange } from '../../src/shared/http/later-range.ts'
import type { DownloadKind, DownloadQuery } from '../../src/shared/query/download-query.ts'
import { parseLegacyQuery } from '../../src/shared/query/legacy-query.ts'
import { type ParseContext, parseDownloadQuery } from '../../src/shared/query/parse-download-query.ts'
import { encodingOf, PARTIAL_ELEMENTS } from '../../src/shared/query/query-values.ts'
import type { GivenParameters } from '../../src/shared/query/read-parameters.ts'
import type { ApplianceContext, ApplianceHandler, ApplianceParts } from '../appliance-parts.ts'
import { withClientSignal } from '../request/client-signal.ts'
import { callerOf, hasForcedFilter } from '../request/labelled-caller.ts'
import { downloadHeaders } from './download-headers.ts'
import { FollowedDownload } from './followed-download.ts'
import { withoutLost } from './lost-segments.ts'
import { onHeld } from './on-held.ts'
import {
  type PreparedDownload,
  type PrepareRequest,
  parseContextOf,
  prepareDownload,
} from './prepare-download.ts'
import {
  COMPLETION_TRAILER_NAMES,
  type PacketSource,
  type SendOutcome,
  sendDownload,
} from './send-download.ts'
import type { Reader } from './stream-limit.ts'

const WAY_ON =
  'ask without Range, or use After=<bytes of the file> to get the rest if the packets have not changed; a gateway checks that, with Resume and Offset'

/** A download from the V1 path of this kind. */
export function storedDownload(kind: DownloadKind): ApplianceHandler {
  return answerWith((given, context) => parseDownloadQuery(kind, given, context))
}

/** A download from the path of this kind below /pcap/. */
export function legacyDownload(kind: DownloadKind): ApplianceHandler {
  return answerWith((given, context) => parseLegacyQuery(kind, given, context))
}

function answerWith(
  parse: (given: GivenParameters, context: ParseContext) => DownloadQuery,
): ApplianceHandler {
  return async (ctx, parts) => {
    parts.draining.throwIfAborted()
    refuseLaterRange(ctx.req, WAY_ON)
    await withClientSignal(ctx, async (signal) => {
      const request = { caller: callerOf(ctx), isForced: hasForcedFilter(ctx), signal }
      const prepared = await prepareDownload(
        parts,
        parse(givenParameters(ctx), parseContextOf(parts)),
        request,
      )
      if (ctx.method !== 'HEAD') {
        await download(parts, ctx, { ...prepared, ...request })
        return
      }
      ctx.respond = false
      ctx.res.writeHead(200, downloadHeaders(prepared)).end()
    })
  }
}

async function download(
  parts: ApplianceParts,
  ctx: ApplianceContext,
  prepared: PreparedDownload & PrepareRequest,
): Promise<void> {
  const { query, signal } = prepared
  const revoked = ctx.state.caller?.revoked
  const reader = readerOf(prepared, ctx)
  using held = new DisposableStack()
  held.defer(() => void parts.damage.send())
  const waiting = AbortSignal.any([signal, parts.draining, ...(revoked === undefined ? [] : [revoked])])
  held.use(await parts.slots.acquire(reader, { waitMs: (query.waitS ?? 0) * 1000, signal: waiting }))
  waiting.throwIfAborted()
  // Until this returns the engine is working, even for a client that has left, and the slot is in use.
  const { engine, agedOutBeforeNs } = await openSource(parts, prepared, prepared)
  reader.totals = () => engine.totals()
  held.defer(() => engine.close())
  signal.throwIfAborted()
  revoked?.throwIfAborted()
  // From now on the slot is released as soon as the client has left, or loses access.
  const release = () => held.dispose()
  held.use(addAbortListener(signal, release))
  if (revoked !== undefined) held.use(addAbortListener(revoked, release))
  const firstChunk = await firstOf(engine, signal)
  writeHead(ctx, downloadHeaders({ ...prepared, agedOutBeforeNs }))
  const outcome = await sendDownload(ctx.res, {
    download: engine,
    firstChunk,
    reader,
    idleTimeoutMs: parts.config.downloads.idleTimeoutMs,
    slowAfterMs: parts.config.downloads.slowAfterMs,
    isWanted: () => parts.slots.isWantedByOthers(reader, parts.config.downloads.slowAfterMs),
    countsDuplicates: query.dedupNs !== undefined,
    partialElement: PARTIAL_ELEMENTS[encodingOf(query.compression)],
    onDrained: () => held.dispose(),
    signal,
    revoked,
  })
  report(parts, ctx, { query, engine, outcome })
}

function readerOf({ query, selection }: PreparedDownload, ctx: ApplianceContext): Reader {
  return {
    mode: query.kind,
    commandLine: `${ctx.method} ${ctx.originalUrl}`,
    what: query.captureName ?? `${query.beginNs}-${query.endNs} of ${selection.captures.length} captures`,
    captures: selection.captures,
    filter: query.filterBpf,
    sliceBytes: query.sliceBytes,
    user: ctx.state.caller?.name ?? '',
    follows: query.follow,
    startedAt: new Date().toISOString(),
    bytes: 0n,
    totals: undefined,
  }
}

interface OpenedSource<Source extends PacketSource> {
  readonly engine: Source
  /** The time from which the selection is complete. */
  readonly agedOutBeforeNs: bigint | undefined
}

async function openSource(
  parts: ApplianceParts,
  prepared: PreparedDownload,
  request: PrepareRequest,
): Promise<OpenedSource<PacketSource>> {
  const { query } = prepared
  if (!query.follow) return await openHeld(parts, prepared, request)
  // A base name would mean a different capture after a roll.
  const { captureName } = prepared
  const engine = await FollowedDownload.open(
    { ...query, captureName },
    {
      flushes: parts.flushes,
      // The expression has been compiled already, so a step need not wait for a helper.
      prepare: async (step) => {
        const found = await prepareDownload(parts, { ...step, filterRegex: undefined }, request)
        return { ...found, query: step, regex: prepared.regex }
      },
      open: (step) => openEngine(step, request),
    },
  )
  return { engine, agedOutBeforeNs: engine.agedOutBeforeNs }
}

/** Prepares again if a segment was removed since, for instance during a long wait for a slot. */
async function openHeld(
  parts: ApplianceParts,
  prepared: PreparedDownload,
  request: PrepareRequest,
): Promise<OpenedSource<Download>> {
  let next: PreparedDownload | undefined = prepared
  const find = async (): Promise<PreparedDownload> => {
    const found = next ?? (await prepareDownload(parts, prepared.query, request))
    next = undefined
    return found
  }
  return await onHeld(
    find,
    async (found) => ({
      engine: await openEngine(found, request),
      agedOutBeforeNs: found.agedOutBeforeNs,
    }),
    withoutLost,
  )
}

async function openEngine(
  { query, selection, program, addresses, regex, mac48LimitNs }: PreparedDownload,
  { isForced, signal }: PrepareRequest,
): Promise<Download> {
  const options: DownloadOptions = {
    streams: selection.streams,
    beginNs: query.beginNs,
    endNs: query.endNs,
    frameFilter: query.frameFilter,
    filter: program,
    filterDecap: query.filterDecap,
    addresses,
    readsAllBlocks: isForced,
    regex,
    timeSource: query.timeSource,
    mac48LimitNs,
    strip: query.strip,
    dedupNs: query.dedupNs,
    dedupBy: query.dedupBy,
    sliceBytes: query.sliceBytes,
    tsMaxNs: query.tsMaxNs,
    maxBytes: query.maxBytes,
    maxPackets: query.maxPackets,
    afterBytes: query.afterBytes,
    timeResolution: query.timeResolution,
    compression: query.compression,
    emptyLinkType: selection.linkType,
  }
  return await Download.open(options, signal)
}

async function firstOf(engine: PacketSource, signal: AbortSignal): Promise<Chunk | undefined> {
  try {
    return await engine.next()
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}

function writeHead(ctx: ApplianceContext, headers: Record<string, string>): void {
  ctx.respond = false
  for (const [name, value] of Object.entries(headers)) ctx.res.setHeader(name, value)
  // Node refuses to announce trailers to HTTP/1.0 clients, which cannot receive any.
  if (ctx.req.httpVersionMinor === 0) ctx.res.setHeader('Connection', 'close')
  else ctx.res.setHeader('Trailer', COMPLETION_TRAILER_NAMES)
  ctx.res.statusCode = 200
}

interface EndedRequest {
  readonly query: DownloadQuery
  readonly engine: PacketSource
  readonly outcome: SendOutcome
}

function report(
  parts: ApplianceParts,
  ctx: ApplianceContext,
  { query, engine, outcome }: EndedRequest,
): void {
  const totals = engine.totals()
  parts.downloads.ended({ kind: query.kind, outcome: outcome.kind, totals })
  const fields = {
    requestId: ctx.state.requestId,
    user: ctx.state.caller?.name,
    kind: query.kind,
    outcome: outcome.kind,
    packets: String(totals.packets),
    bytes: String(totals.outputBytes),
    corruptBlocks: String(totals.corruptBlocks),
  }
  if (totals.corruptBlocks > 0n) parts.log.warn('download.corrupt-blocks', fields)
  if (outcome.kind === 'failed') parts.log.error('download.failed', { ...fields, err: outcome.error })
  else parts.log.info('download.ended', fields)
}
