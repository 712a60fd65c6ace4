/**
 * /api/v1/pcap/single, timerange and splittime (API section 4.4). Everything that can be wrong is
 * found before a slot is taken, and the engine has begun before the status goes out.
 */
import { type Chunk, Download } from '../native/addon.ts'
import type { DownloadKind, DownloadQuery } from '../src/query/download-query.ts'
import { parseDownloadQuery } from '../src/query/parse-download-query.ts'
import { encodingOf, PARTIAL_ELEMENTS } from '../src/query/query-values.ts'
import type { ApplianceContext, ApplianceHandler, ApplianceParts } from './appliance-parts.ts'
import { nowNs } from './appliance-parts.ts'
import { downloadHeaders } from './download-headers.ts'
import { type StreamSelection, selectStreams } from './select-streams.ts'
import { COMPLETION_TRAILER_NAMES, type SendOutcome, sendDownload } from './send-download.ts'
import type { Reader } from './stream-limit.ts'

/** A download that passed all checks. */
interface Prepared {
  readonly query: DownloadQuery
  readonly selection: StreamSelection
  readonly program: Uint8Array | undefined
  readonly headers: Record<string, string>
}

export function storedDownload(kind: DownloadKind): ApplianceHandler {
  return async (parts, ctx) => {
    parts.draining.throwIfAborted()
    const gone = new AbortController()
    ctx.res.once('close', () => gone.abort(new ClientGone()))
    try {
      const prepared = await prepare(parts, { kind, raw: ctx.querystring, signal: gone.signal })
      if (ctx.method === 'HEAD') {
        ctx.respond = false
        ctx.res.writeHead(200, prepared.headers).end()
        return
      }
      await download(parts, ctx, { ...prepared, signal: gone.signal })
    } catch (error) {
      // Nobody is left to answer.
      if (gone.signal.aborted && error === gone.signal.reason) {
        ctx.respond = false
        return
      }
      throw error
    }
  }
}

/** The reason of a request's signal. */
class ClientGone extends Error {}

interface DownloadRequest {
  readonly kind: DownloadKind
  readonly raw: string
  readonly signal: AbortSignal
}

async function prepare(parts: ApplianceParts, request: DownloadRequest): Promise<Prepared> {
  const query = parseDownloadQuery(request.kind, request.raw, {
    zone: parts.config.timeZone,
    nowNs: nowNs(),
  })
  const { catalogue } = parts
  const captures =
    query.captureName === undefined ? await catalogue.list() : [await catalogue.find(query.captureName)]
  const selection = selectStreams(captures, {
    range: query,
    folderOf: (capture) => catalogue.folderOf(capture),
  })
  const program =
    query.filterBpf === undefined
      ? undefined
      : await parts.compiler.compile(
          { expression: query.filterBpf, linkType: selection.linkType },
          request.signal,
        )
  const [capture] = captures
  const name =
    query.captureName === undefined || capture === undefined
      ? `${parts.config.deviceName}_${query.beginNs}_${query.endNs}`
      : capture.name
  return { query, selection, program, headers: downloadHeaders({ query, name }) }
}

async function download(
  parts: ApplianceParts,
  ctx: ApplianceContext,
  prepared: Prepared & { readonly signal: AbortSignal },
): Promise<void> {
  const { query, signal } = prepared
  const reader = readerOf(prepared, ctx.state.user)
  using held = new DisposableStack()
  const waiting = AbortSignal.any([signal, parts.draining])
  held.use(await parts.slots.acquire(reader, { waitMs: (query.waitS ?? 0) * 1000, signal: waiting }))
  waiting.throwIfAborted()
  // The slot is free as soon as the client is gone, whatever the engine is busy with.
  signal.addEventListener('abort', () => held.dispose(), { once: true })
  const engine = await openEngine(prepared, signal)
  held.defer(() => engine.close())
  const firstChunk = await firstOf(engine, signal)
  writeHead(ctx, prepared.headers)
  const outcome = await sendDownload(ctx.res, {
    download: engine,
    firstChunk,
    reader,
    idleTimeoutMs: parts.config.downloads.idleTimeoutMs,
    partialElement: PARTIAL_ELEMENTS[encodingOf(query.compression)],
    onDrained: () => held.dispose(),
    signal,
  })
  report(parts, ctx, { query, engine, outcome })
}

function readerOf({ query, selection }: Prepared, user: string | undefined): Reader {
  return {
    what: query.captureName ?? `${query.beginNs}-${query.endNs} of ${selection.captures.length} captures`,
    captures: selection.captures,
    filter: query.filterBpf,
    user,
    startedAt: new Date().toISOString(),
    bytes: 0n,
  }
}

async function openEngine({ query, selection, program }: Prepared, signal: AbortSignal): Promise<Download> {
  const engine = await Download.open({
    streams: selection.streams,
    beginNs: query.beginNs,
    endNs: query.endNs,
    filter: program,
    sliceBytes: query.sliceBytes,
    tsMaxNs: query.tsMaxNs,
    timeResolution: query.timeResolution,
    compression: query.compression,
    emptyLinkType: selection.linkType,
  })
  if (signal.aborted) engine.close()
  signal.throwIfAborted()
  return engine
}

async function firstOf(engine: Download, signal: AbortSignal): Promise<Chunk | undefined> {
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
  // Node refuses to announce trailers to HTTP/1.0, which has no way to carry them.
  if (ctx.req.httpVersionMinor === 0) ctx.res.setHeader('Connection', 'close')
  else ctx.res.setHeader('Trailer', COMPLETION_TRAILER_NAMES)
  ctx.res.statusCode = 200
}

interface EndedRequest {
  readonly query: DownloadQuery
  readonly engine: Download
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
    user: ctx.state.user,
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
