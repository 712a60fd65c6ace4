import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RouteContext } from '../request/route-context.ts'

/** Text length that is long enough to be worth a write, and short enough not to delay other requests. */
const BATCH_LENGTH = 65_536

/**
 * Answers with {`head`, `name`:[entries], rest}, piece by piece: a list of a hundred thousand entries does not block
 * other requests, and a slow client holds no more than a piece of it in memory. `entries` are JSON objects, in
 * batches, with the members after the list at their end. Failures before the first piece are thrown; later ones cut
 * off the client, as does reading nothing for `clientIdleTimeoutMs`.
 */
export async function answerList(
  ctx: RouteContext,
  head: Readonly<Record<string, unknown>>,
  entries: AsyncIterator<readonly string[], Readonly<Record<string, unknown>>>,
  clientIdleTimeoutMs: number,
  name = 'List',
): Promise<void> {
  await answerPieces(ctx, 'application/json', listPieces(head, name, entries), clientIdleTimeoutMs)
}

/** The same for text with many lines. */
export async function answerText(
  ctx: RouteContext,
  mediaType: string,
  lines: AsyncIterable<string>,
  clientIdleTimeoutMs: number,
): Promise<void> {
  await answerPieces(ctx, mediaType, textPieces(lines), clientIdleTimeoutMs)
}

async function answerPieces(
  ctx: RouteContext,
  mediaType: string,
  pieces: AsyncGenerator<string, void>,
  clientIdleTimeoutMs: number,
): Promise<void> {
  const first = await pieces.next()
  ctx.respond = false
  ctx.res.setHeader('Content-Type', `${mediaType}; charset=utf-8`)
  ctx.res.statusCode = 200
  if (ctx.method === 'HEAD') {
    await pieces.return()
    ctx.res.end()
    return
  }
  ctx.res.setTimeout(clientIdleTimeoutMs, () => ctx.res.destroy())
  try {
    await pipeline(Readable.from(joined(first.value ?? '', pieces)), ctx.res)
  } catch (error) {
    if (!isLeaving(error)) throw error
  }
}

/** The client has left, which is not an error. */
function isLeaving(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE'
}

async function* joined(first: string, rest: AsyncGenerator<string, void>): AsyncGenerator<string, void> {
  yield first
  yield* rest
}

async function* textPieces(lines: AsyncIterable<string>): AsyncGenerator<string, void> {
  let piece = ''
  for await (const line of lines) {
    piece += line
    if (piece.length < BATCH_LENGTH) continue
    yield piece
    piece = ''
    await nextTurn()
  }
  yield piece
}

async function* listPieces(
  head: Readonly<Record<string, unknown>>,
  name: string,
  entries: AsyncIterator<readonly string[], Readonly<Record<string, unknown>>>,
): AsyncGenerator<string, void> {
  try {
    let piece = `${JSON.stringify(head).slice(0, -1)},${JSON.stringify(name)}:[`
    let comma = ''
    for (;;) {
      const batch = await entries.next()
      if (batch.done === true) {
        const rest = JSON.stringify(batch.value).slice(1)
        yield `${piece}]${rest === '}' ? '' : ','}${rest}`
        return
      }
      for (const entry of batch.value) {
        piece += comma + entry
        comma = ','
      }
      if (piece.length < BATCH_LENGTH) continue
      yield piece
      piece = ''
      await nextTurn()
    }
  } finally {
    await entries.return?.()
  }
}
