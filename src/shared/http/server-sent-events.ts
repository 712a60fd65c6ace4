/** Server-sent events (WHATWG HTML, 9.2) as a program writes them. */
import { addAbortListener } from 'node:events'
import type { Bell } from '../base/bell.ts'

/** Shorter than proxies let a connection be silent. */
const KEEP_ALIVE_MS = 15_000
const KEEP_ALIVE = ': keep-alive\n\n'

/** An event that has no id does not change where a client resumes. REQUIRES: `data` has no line end. */
export function formatEvent(name: string, data: string, id?: string | number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${data}\n\n`
}

export interface EventTexts {
  /** A comment that the stream begins with. */
  readonly title: string
  /** Rings when next() may have something. */
  readonly bell: Bell
  /** The next events as text, or undefined while there are none. */
  readonly next: () => string | undefined
  readonly signal: AbortSignal
}

/** Everything that next() gives, as it comes, and a comment now and then in between. Ends when the signal aborts. */
export async function* eventTexts({ title, bell, next, signal }: EventTexts): AsyncGenerator<string> {
  addAbortListener(signal, bell.ring)
  const isSilent = bell.every(KEEP_ALIVE_MS)
  // Sent at once, so that a client sees that it is connected; it may come back after 2 s.
  yield `retry: 2000\n: ${title}\n\n`
  while (!signal.aborted) {
    for (let text = next(); text !== undefined && !signal.aborted; text = next()) yield text
    if (isSilent()) yield KEEP_ALIVE
    await bell.wait()
  }
}
