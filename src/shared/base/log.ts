import { pino } from 'pino'
import { GatheredLines } from './gathered-lines.ts'
import { redacted } from './redact.ts'
import { currentRequest } from './request-context.ts'

type Fields = Readonly<Record<string, unknown>>

/** Structured log: an event name with a dot ("lease.acquired") and fields; no prose. */
export interface Log {
  debug(event: string, fields?: Fields): void
  info(event: string, fields?: Fields): void
  warn(event: string, fields?: Fields): void
  error(event: string, fields?: Fields): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Written in this thread: another thread would lose lines, or their order, when the process exits. */
const STDERR = pino.destination({ dest: 2, sync: true })
const LINES = new GatheredLines((lines) => STDERR.write(redacted(lines)))
process.once('exit', () => LINES.flush())

/**
 * Much of what is logged comes from callers and devices, whose paths and texts can be 64 KiB. Filling a disk with log
 * lines must take more than a few requests.
 */
const TEXT_MAX = 2_048

/**
 * JSON lines on stderr, so that stdout stays free for data. `err` fields are written with their stack. Lines are
 * batched, and flushed when the process exits. Long texts are truncated, and secrets redacted. Lines written for a
 * request include its id and trace.
 */
export function createLog(program: string, level: LogLevel): Log {
  const logger = pino(
    {
      level,
      base: { program },
      messageKey: 'event',
      mixin: ofRequest,
      formatters: { log: withShortTexts },
      serializers: { err: (error: Error) => withShortTexts(plainMembers(pino.stdSerializers.err(error))) },
    },
    LINES,
  )
  return {
    debug: (event, fields = {}) => logger.debug(fields, event),
    info: (event, fields = {}) => logger.info(fields, event),
    warn: (event, fields = {}) => logger.warn(fields, event),
    error: (event, fields = {}) => logger.error(fields, event),
  }
}

function ofRequest(): Record<string, unknown> {
  const request = currentRequest()
  return request === undefined ? {} : { requestId: request.requestId, traceId: request.trace.traceId }
}

/** The clients of Redis and S3 attach what they have sent to their errors, including passwords. */
function plainMembers(error: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(error).filter(([, value]) => Object(value) !== value))
}

/** Returns the same object if none of its texts is too long. */
function withShortTexts(fields: Record<string, unknown>): Record<string, unknown> {
  let short = fields
  for (const name in fields) {
    const value = fields[name]
    if (typeof value !== 'string' || value.length <= TEXT_MAX) continue
    if (short === fields) short = { ...fields }
    short[name] = `${value.slice(0, TEXT_MAX)}... (${value.length} characters)`
  }
  return short
}
