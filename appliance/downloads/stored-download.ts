/**
 * The downloads single, timerange and splittime. Everything that can be wrong is detected before a slot is taken, and
 * the engine has begun before the status is sent.
 */
import { addAbortListener } from 'node:events'
import type { Chunk } from '../../native/addon.ts'
import { givenParameters } from '../../src/shared/contract/request-parameters.ts'
import { refuseLaterRange } from '../../src/shared/http/later-range.ts'
import type { DownloadKind, DownloadQuery } from '../../src/shared/query/download/download-query.ts'
import { parseLegacyQuery } from '../../src/shared/query/download/legacy-query.ts'
import {
  type ParseContext,
  parseDownloadQuery,
} from '../../src/shared/query/download/parse-download-query.ts'
import { bodyEncodingOf, PARTIAL_ELEMENTS } from '../../src/shared/query/download/query-values.ts'
import type { GivenParameters } from '../../src/shared/query/read-parameters.ts'
import type { ApplianceContext, ApplianceHandler, ApplianceParts } from '../appliance-parts.ts'
import { withClientSignal } from '../request/client-signal.ts'
import { callerOf, hasForcedFilter } from '../request/labelled-caller.ts'
import { downloadHeaders } from './download-headers.ts'
import { FollowedDownload } from './followed-download.ts'
import { NOTHING_LOST } from './lost-packets.ts'
import { onPrepared, openEngine, readerOf } from './open-download.ts'
import { PcapngBody, PcapngSource } from './pcapng-body.ts'
import { pcapngOtherBytes } from './pcapng-size.ts'
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
      pcapngOtherBytes(parts, prepared, request)
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
  const reader = readerOf(prepared, ctx, query.kind)
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
    partialElement: PARTIAL_ELEMENTS[bodyEncodingOf(query)],
    onDrained: () => held.dispose(),
    signal,
    revoked,
  })
  report(parts, ctx, { query, engine, outcome })
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
  const { config, serial } = parts
  const body =
    query.format === 'pcapng'
      ? new PcapngBody({ device: { ...config, serial }, query, isForced: request.isForced })
      : undefined
  const opened = await openPackets(parts, prepared, { request, body })
  if (body === undefined) return opened
  const findLost = async () => {
    await parts.damage.send()
    return (await prepareDownload(parts, query, request)).lost ?? NOTHING_LOST
  }
  return {
    ...opened,
    engine: new PcapngSource(opened.engine, { body, compression: query.compression, findLost }),
  }
}

interface FileRequest {
  readonly request: PrepareRequest
  /** The file in pcapng; undefined: PCAP. */
  readonly body: PcapngBody | undefined
}

async function openPackets(
  parts: ApplianceParts,
  prepared: PreparedDownload,
  { request, body }: FileRequest,
): Promise<OpenedSource<PacketSource>> {
  const { query } = prepared
  if (!query.follow)
    return await onPrepared(parts, prepared, request, async (found) => ({
      engine: await openEngine(found, request, body),
      agedOutBeforeNs: found.agedOutBeforeNs,
    }))
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
      open: (step) => openEngine(step, request, body),
    },
  )
  return { engine, agedOutBeforeNs: engine.agedOutBeforeNs }
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
