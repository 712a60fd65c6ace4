/** Answers GET and HEAD with a stored file, or a part of it. */
import { addAbortSignal, type Readable } from 'node:stream'
import { CapfleetError } from '../../../shared/base/error.ts'
import type { Log } from '../../../shared/base/log.ts'
import { cutResponse } from '../../../shared/http/cut-response.ts'
import { watchSlowClient } from '../../../shared/http/slow-client.ts'
import { type WantedPart, wantedPart } from '../../../shared/http/wanted-part.ts'
import { ENCODING_FILES } from '../../../shared/query/download/query-values.ts'
import type { ByteRange } from '../../export/target/export-target.ts'
import type { DownloadOutcomes } from '../../serve/download-outcomes.ts'
import { endBody, sendBody } from '../../serve/send-body.ts'
import { requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { FileAudit } from './file-audit.ts'

export interface OfferedFile {
  /** Safe to use in a header unescaped. */
  readonly name: string
  readonly bytes: number
  /** SHA-256 of the whole file, in hexadecimal. */
  readonly sha256: string
  open(range: ByteRange | undefined): Promise<Readable>
}

export interface AnswerFileOptions {
  /** A client that in this time reads neither 1 MiB nor everything available is cut off; it can continue with Range. */
  readonly clientIdleTimeoutMs: number
  /** Ends the answer, with its reason. */
  readonly cut: AbortSignal
  readonly log: Log
  readonly metrics: Pick<DownloadOutcomes, 'fileSent'>
  readonly audit: Pick<FileAudit, 'begin' | 'end'>
}

/**
 * Resolves when the answer has been sent or the client has left. Failures before the first byte are thrown; later ones
 * break the connection, and Content-Length tells the client that something is missing.
 */
export async function answerFile(
  ctx: RouteContext,
  file: OfferedFile,
  options: AnswerFileOptions,
): Promise<void> {
  const etag = `"${file.sha256}"`
  const part = wantedPart(ctx.req, { etag, bytes: file.bytes })
  if (part.status === 416) {
    ctx.set('Content-Range', `bytes */${file.bytes}`)
    throw new CapfleetError(
      'range-not-satisfiable',
      `${file.name} has ${file.bytes} bytes, and Range starts after its end; request bytes within the file`,
    )
  }
  const head = { ETag: etag, 'Cache-Control': 'private, no-cache', ...partHead(file, part) }
  if (part.status !== 304 && ctx.method === 'GET') return await sendPart(ctx, file, { part, head }, options)
  ctx.respond = false
  ctx.res.writeHead(part.status, head)
  ctx.res.end()
}

type Head = Readonly<Record<string, string | number>>

interface Answer {
  readonly part: WantedPart
  readonly head: Head
}

function partHead({ name, bytes }: OfferedFile, part: WantedPart): Head {
  if (part.status === 304) return {}
  const range = part.status === 206 ? { 'Content-Range': `bytes ${part.first}-${part.last}/${bytes}` } : {}
  return {
    'Content-Type': mediaTypeOf(name),
    'Content-Length': lengthOf(part, bytes),
    'Content-Disposition': `attachment; filename="${name}"`,
    'Accept-Ranges': 'bytes',
    'X-Accel-Buffering': 'no',
    ...range,
  }
}

function lengthOf(part: WantedPart, bytes: number): number {
  return part.status === 206 ? part.last - part.first + 1 : bytes
}

function mediaTypeOf(name: string): string {
  if (name.endsWith('.json')) return 'application/json'
  const plain = name.replace('.pcapng.', '.pcap.')
  const known = Object.values(ENCODING_FILES).find(({ ending }) => plain.endsWith(ending))
  return known?.mediaType ?? 'application/octet-stream'
}

async function sendPart(
  ctx: RouteContext,
  file: OfferedFile,
  { part, head }: Answer,
  { clientIdleTimeoutMs, cut, log, metrics, audit }: AnswerFileOptions,
): Promise<void> {
  const { res, state } = ctx
  using leaving = requestSignal(ctx)
  const slow = new AbortController()
  const { caller } = state
  const signal = AbortSignal.any([
    leaving.signal,
    slow.signal,
    cut,
    ...(caller === undefined ? [] : [caller.revoked]),
  ])
  await audit.begin(part)
  const length = new ExpectedLength(lengthOf(part, file.bytes))
  const stream = await opened(file, part, audit)
  try {
    signal.throwIfAborted()
    addAbortSignal(signal, stream)
    ctx.respond = false
    res.writeHead(part.status, head)
    using _watch = watchSlowClient({
      res,
      turnMs: clientIdleTimeoutMs,
      writtenBytes: () => BigInt(length.seen),
      isWanted: () => true,
      onSlow: () => slow.abort(TOO_SLOW),
    })
    // The client recognizes the end by the length, so the last bytes are sent only once the audit has recorded it.
    const chunks = withBeforeEnd(stream, length, () => audit.end('complete', length.bytes))
    await sendBody(chunks, res, { signal, onChunk: (chunk) => metrics.fileSent(chunk.length) })
    length.end()
    await endBody(res, {})
  } catch (error) {
    audit.end(leaving.signal.aborted ? 'client-gone' : 'failed', length.seen).catch(() => undefined)
    if (leaving.signal.aborted) return
    const err = signal.aborted ? signal.reason : error
    if (!res.headersSent) throw err
    log.warn('file.cut', { requestId: state.requestId, file: file.name, err })
    await cutResponse(res, new Uint8Array(0), { reason: err })
  } finally {
    stream.destroy()
  }
}

const TOO_SLOW = new CapfleetError(
  'client-timeout',
  'the client read less than 1 MiB for too long; it may resume with Range',
)

async function opened(
  file: OfferedFile,
  part: WantedPart,
  audit: AnswerFileOptions['audit'],
): Promise<Readable> {
  try {
    return await file.open(part.status === 206 ? part : undefined)
  } catch (error) {
    audit.end('failed', 0).catch(() => undefined)
    throw error
  }
}

async function* withBeforeEnd(
  chunks: AsyncIterable<Uint8Array>,
  length: ExpectedLength,
  beforeEnd: () => Promise<void>,
): AsyncGenerator<Uint8Array, void> {
  for await (const chunk of chunks) {
    length.see(chunk)
    if (length.seen === length.bytes) await beforeEnd()
    yield chunk
  }
}

/** Rejects a body whose length differs from the one in the head. */
class ExpectedLength {
  readonly bytes: number
  seen = 0

  constructor(bytes: number) {
    this.bytes = bytes
  }

  see({ length }: Uint8Array): void {
    if (this.seen + length > this.bytes) throw wrongLength('more')
    this.seen += length
  }

  end(): void {
    if (this.seen < this.bytes) throw wrongLength('less')
  }
}

function wrongLength(what: 'more' | 'less'): CapfleetError {
  return new CapfleetError(
    'export-target-unavailable',
    `the stored file is ${what} than when it was written; check what else writes there`,
  )
}
