/**
 * Removes other users' queries from what a device reports about itself. Third-party devices are included: what cannot
 * be parsed is dropped.
 */
import { Transform, type TransformCallback } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { BACKSLASH, COMMA, closes, isSpace, nestsTooDeep, opens, QUOTE } from './device-json.ts'

/** Telemetry has lines of about 8 KiB. */
const CHARACTERS_MAX = 1_048_576

/** Members of a running download, except those that say whether there is one and of which kind. */
const READER_MEMBER = /^cat_\d+_(?!Enable$|Mode$)/i
const COLON = 0x3a
/** Members that contain a query, or part of one, wherever they occur. */
const QUERY_MEMBER = /cmdline|command|streamname|filter|query|url/i

/**
 * The same JSON with these members emptied: "", 0 or false. Text that is not JSON becomes "". It is changed in place,
 * because a parser that calls back for each value takes much longer, and a report has hundreds.
 */
export function withoutQueries(json: string): string {
  if (nestsTooDeep(json) || !isJson(json)) return '""'
  let shown = ''
  let shownUntil = 0
  for (let at = json.indexOf('"'); at >= 0; ) {
    const end = endOfString(json, at)
    const colon = afterSpace(json, end)
    const isName = json.charCodeAt(colon) === COLON
    if (isName && isHidden(json.slice(at, end))) {
      const valueAt = afterSpace(json, colon + 1)
      shown += json.slice(shownUntil, valueAt) + emptyLike(json[valueAt] ?? '')
      shownUntil = endOfValue(json, valueAt)
      at = json.indexOf('"', shownUntil)
    } else at = json.indexOf('"', end)
  }
  return shown + json.slice(shownUntil)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/**
 * `quoted`: the name as it is written. It is parsed alone, because JSON.parse of Node.js 24 may take a name with an
 * escape for that of an earlier object: {"\\":1} before {"\"":1}.
 */
function isHidden(quoted: string): boolean {
  const name = quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1)
  return READER_MEMBER.test(name.trim()) || QUERY_MEMBER.test(name)
}

/** By the first character of the value. */
function emptyLike(first: string): string {
  if (first === 't' || first === 'f') return 'false'
  return /[-0-9]/.test(first) ? '0' : '""'
}

// The following require valid JSON.

/** After the closing quote of the string at this place. */
function endOfString(json: string, at: number): number {
  for (let end = at + 1; ; end++) {
    const code = json.charCodeAt(end)
    if (code === QUOTE) return end + 1
    if (code === BACKSLASH) end++
  }
}

function afterSpace(json: string, from: number): number {
  let at = from
  while (isSpace(json.charCodeAt(at))) at++
  return at
}

/** After the value at this place. */
function endOfValue(json: string, from: number): number {
  let depth = 0
  for (let at = from; at < json.length; ) {
    const code = json.charCodeAt(at)
    if (depth === 0 && (code === COMMA || isSpace(code) || closes(code))) return at
    if (code === QUOTE) at = endOfString(json, at)
    else {
      if (opens(code)) depth++
      if (closes(code)) depth--
      at++
    }
    if (depth === 0 && (code === QUOTE || closes(code))) return at
  }
  return json.length
}

/** The same for server-sent events: the JSON of `data` lines. Lines that do not belong to an event are dropped. */
export function eventsWithoutQueries(events: string): string {
  return events.split('\n').map(eventLine).join('\n')
}

function eventLine(line: string): string {
  const text = line.trimEnd()
  if (text.startsWith('data:')) return `data: ${withoutQueries(text.slice('data:'.length).trim())}`
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
