import { pino } from 'pino'

type Fields = Readonly<Record<string, unknown>>

/** Structured log: an event name with a dot ("lease.acquired") and fields; no prose. */
export interface Log {
  debug(event: string, fields?: Fields): void
  info(event: string, fields?: Fields): void
  warn(event: string, fields?: Fields): void
  error(event: string, fields?: Fields): void
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** JSON lines on stderr, so that stdout stays free for data. `err` fields are written with stack. */
export function createLog(program: string, level: LogLevel): Log {
  const logger = pino(
    { level, base: { program }, messageKey: 'event' },
    pino.destination({ dest: 2, sync: true }),
  )
  return {
    debug: (event, fields = {}) => logger.debug(fields, event),
    info: (event, fields = {}) => logger.info(fields, event),
    warn: (event, fields = {}) => logger.warn(fields, event),
    error: (event, fields = {}) => logger.error(fields, event),
  }
}
