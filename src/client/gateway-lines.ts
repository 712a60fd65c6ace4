/** An answer of a gateway that arrives line by line while devices work: the last line has `end`. */
import { ClientFailure, problemFailure } from './client-failure.ts'
import type { GatewayClient, QueryPairs } from './gateway-client.ts'

export interface LinesRequest {
  readonly path: string
  readonly query: QueryPairs
  readonly signal: AbortSignal
  /** What it means if the last line does not arrive. */
  readonly brokenOff: string
}

/** A line about one device may have an error, any other line with an error is the end of the answer. */
interface LineError {
  readonly error: { readonly code: string; readonly detail: string }
}

export interface GatewayLine<Line> {
  readonly line: Line
  /** As the gateway sent it. */
  readonly text: string
  /** The header Date of the answer, sent before the work began; null: there was none. */
  readonly askedAt: string | null
}

/** Fails with a ClientFailure if there is no last line. */
export async function* gatewayLines<Line extends object>(
  client: GatewayClient,
  { path, query, signal, brokenOff }: LinesRequest,
): AsyncGenerator<GatewayLine<Line>> {
  using answer = await client.open(path, { query, signal })
  const askedAt = answer.headers.get('date')
  const decoder = new TextDecoder()
  let rest = ''
  let hasEnded = false
  for await (const piece of answer.body) {
    const texts = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = texts.pop() ?? ''
    for (const text of texts) {
      const line = JSON.parse(text) as Line | LineError
      if ('error' in line && !('device' in line))
        throw problemFailure(STATUS_OF_LINE, new Headers(), JSON.stringify(line.error))
      hasEnded ||= 'end' in line
      yield { line: line as Line, text, askedAt }
    }
  }
  if (!hasEnded) throw new ClientFailure('incomplete', brokenOff, { code: 'broken-off' })
}

/** A failure after the first byte has no status of its own. */
const STATUS_OF_LINE = 500
