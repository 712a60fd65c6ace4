/** Answers that continue until the client leaves: events and telemetry. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Caller } from '../base/caller.ts'
import type { LiveCaller, LiveLimit } from './live-limit.ts'
import { resetConnection } from './reset-connection.ts'

export interface LiveParts {
  /** Aborts at the start of a shutdown, with the error draining as its reason. */
  readonly draining: AbortSignal
  readonly live: LiveLimit
}

export interface LiveAnswer {
  /** The caller whose place it takes. */
  readonly caller: LiveCaller
  readonly contentType: string
  /** The texts to send, as they become available; ends soon after `signal` has aborted. */
  readonly texts: (signal: AbortSignal) => AsyncIterable<string>
}

/** The parts of a request context that are needed. */
export interface LiveContext {
  readonly method: string
  readonly res: ServerResponse
  readonly state: { readonly caller?: Caller }
  respond?: boolean | undefined
}

/** A client that reads nothing for this long occupies a place that other clients may need. */
const STALL_LIMIT_MS = 30_000

/**
 * Sends the texts until they end, the client leaves or loses access, or the program ends. Waits for a slow client, and
 * cuts one that reads nothing at all. Fails with event-streams-exhausted or draining before the first byte.
 */
export async function answerLive(
  { draining, live }: LiveParts,
  ctx: LiveContext,
  { caller, contentType, texts }: LiveAnswer,
): Promise<void> {
  draining.throwIfAborted()
  using _place = ctx.method === 'HEAD' ? undefined : live.take(caller)
  const { res } = ctx
  ctx.respond = false
  res.writeHead(200, {
    'Content-Type': contentType,
    'Cache-Control': 'no-store',
    // Otherwise nginx buffers lines.
    'X-Accel-Buffering': 'no',
  })
  const revoked = ctx.state.caller?.revoked
  const ends = [draining, ...(revoked === undefined ? [] : [revoked])]
  if (ctx.method !== 'HEAD') await sendTexts(res, texts, ends)
  res.end()
}

/**
 * Writes the texts as the client takes them, until one of the signals aborts or the client has left. A client that
 * takes nothing for long is cut off.
 */
export async function sendTexts(
  res: ServerResponse,
  texts: LiveAnswer['texts'],
  ends: readonly AbortSignal[],
): Promise<void> {
  const gone = new AbortController()
  res.once('close', () => gone.abort())
  if (res.closed) gone.abort()
  const signal = AbortSignal.any([gone.signal, ...ends])
  for await (const text of texts(signal)) {
    if (signal.aborted) return
    if (!res.write(text)) await drained(res, signal)
  }
}

/** Resolves when there is room again, or the client has left. */
async function drained(res: ServerResponse, signal: AbortSignal): Promise<void> {
  const stalled = setTimeout(() => res.socket !== null && resetConnection(res.socket), STALL_LIMIT_MS)
  try {
    await once(res, 'drain', { signal })
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    clearTimeout(stalled)
  }
}
