/**
 * Removes other users' queries from what a device reports about itself. Third-party devices are included: what cannot
 * be parsed is dropped.
 */
import { Transform, type TransformCallback } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { nestsTooDeep, parseExactly } from './device-json.ts'

/** Telemetry has lines of about 8 KiB. */
const CHARACTERS_MAX = 1_048_576

/** Members of a running download, except those that say whether there is one and of which kind. */
const READER_MEMBER = /^cat_\d+_(?!Enable$|Mode$)/i
/** Members that contain a query, or part of one, wherever they occur. */
const QUERY_MEMBER = /cmdline|command|streamname|filter|query|url/i

/** The same JSON with these members emptied: "", 0 or false. Text that is not JSON becomes "". */
export function withoutQueries(json: string): string {
  if (nestsTooDeep(json)) return '""'
  try {
    return JSON.stringify(parseExactly(json, emptied))
  } catch {
    return '""'
  }
}

function emptied(name: string, value: unknown): unknown {
  if (!READER_MEMBER.test(name.trim()) && !QUERY_MEMBER.test(name)) return value
  if (typeof value === 'boolean') return false
  return typeof value === 'number' || (JSON as unknown as RawJson).isRawJSON(value) ? 0 : ''
}

interface RawJson {
  isRawJSON(value: unknown): boolean
}

/** The same for server-sent events: the JSON of `data` lines. Lines that do not belong to an event are dropped. */
export function eventsWithoutQueries(events: string): string {
  return events.split('\n').map(eventLine).join('\n')
}

function eventLine(line: string): string {
  const text = line.trimEnd()
  if (text.startsWith('data:')) return `data: ${withoutQueries(text.slice('data:'.length))}`
  return /^(?:|:.*|(?:event|id|retry):.*)$/.test(text) ? text : ''
}

function jsonLine(line: string): string {
  return line.trim() === '' ? '' : withoutQueries(line)
}

/** The form of a body: one JSON text, one JSON text per line, or server-sent events. */
export type BodyForm = 'json' | 'lines' | 'events'

/** Does the same to a body while it arrives. Fails if a line or a JSON text is too long to check. */
export class QueryEmptier extends Transform {
  readonly #form: BodyForm
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''

  constructor(form: BodyForm) {
    super()
    this.#form = form
  }

  override _transform(bytes: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const text = this.#rest + this.#decoder.write(bytes)
    const end = this.#form === 'json' ? 0 : text.lastIndexOf('\n') + 1
    this.#rest = text.slice(end)
    if (this.#rest.length > CHARACTERS_MAX) done(new Error('a line is too long'))
    else done(null, this.#emptied(text.slice(0, end)))
  }

  override _flush(done: TransformCallback): void {
    done(null, this.#emptied(this.#rest + this.#decoder.end()))
  }

  #emptied(text: string): string {
    if (this.#form === 'json') return jsonLine(text)
    if (this.#form === 'events') return eventsWithoutQueries(text)
    return text.split('\n').map(jsonLine).join('\n')
  }
}
