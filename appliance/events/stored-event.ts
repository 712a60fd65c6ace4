/** One event as a line of the log. */
import { z } from 'zod'

const NEWLINE = 0x0a

const storedEventSchema = z.object({
  id: z.int(),
  /** Id of the previous event; 0 = it is the first of its log. */
  after: z.int(),
  data: z.looseObject({
    /** Time of the event: epoch nanoseconds. */
    TS: z.string(),
    Kind: z.string(),
  }),
})
export type StoredEvent = z.infer<typeof storedEventSchema>

/**
 * The events in complete lines, and the length of these in bytes: a line without end is being written, or was left by
 * a crash. Lines that are not events are skipped.
 */
export function storedEvents(bytes: Buffer): { readonly events: StoredEvent[]; readonly length: number } {
  const length = bytes.lastIndexOf(NEWLINE) + 1
  const lines = bytes.toString('utf8', 0, length).split('\n')
  return { events: lines.flatMap((line) => parseEvent(line) ?? []), length }
}

function parseEvent(line: string): StoredEvent | undefined {
  try {
    return storedEventSchema.parse(JSON.parse(line))
  } catch {
    return undefined
  }
}
