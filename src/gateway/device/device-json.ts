/** JSON of a device, which is not trusted: a short text, or a long list while it arrives. */
import { deviceProtocol } from './device-failure.ts'
import { MalformedAnswer } from './response-head.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const COMMA = 0x2c

/** The API's answers have three levels. What is nested deeper may not be written again without harm. */
const DEPTH_MAX = 16

/** A device's JSON. Fails with device-protocol when it is malformed or nested too deep. */
export function parseDeviceJson(
  device: string,
  text: string,
  { path }: { readonly path?: string } = {},
): unknown {
  if (nestsTooDeep(text)) throw deviceProtocol(device, `sent JSON nested more than ${DEPTH_MAX} levels deep`)
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''))
  } catch (cause) {
    throw deviceProtocol(device, `sent malformed JSON${path === undefined ? '' : ` for ${path}`}`, cause)
  }
}

/** ECMAScript's JSON.rawJSON and the third argument of a reviver; the type declarations do not have them yet. */
const rawJson = (JSON as unknown as { rawJSON(text: string): object }).rawJSON
type ExactReviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown

/**
 * Numbers beyond 2^53, such as nanoseconds, stay as they are written: JSON.stringify writes them so again. `changed` may
 * replace the value of any member or element. Fails with a SyntaxError.
 */
export function parseExactly(
  json: string,
  changed: (name: string, value: unknown) => unknown = (_name, value) => value,
): unknown {
  const exactly: ExactReviver = (name, value, { source }) =>
    changed(
      name,
      typeof value === 'number' && source !== undefined && !Number.isSafeInteger(value)
        ? rawJson(source)
        : value,
    )
  return JSON.parse(json, exactly as (key: string, value: unknown) => unknown)
}

/** Looks at brackets outside of strings alone, so that it needs no stack, however deep they are nested. */
export function nestsTooDeep(text: string): boolean {
  let depth = 0
  let isInString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === BACKSLASH) at++
    else if (code === QUOTE) isInString = !isInString
    else if (!isInString && opens(code) && ++depth > DEPTH_MAX) return true
    else if (!isInString && closes(code)) depth--
  }
  return false
}

const ENTRY_BYTES_MAX = 16_384
const ENTRY_DEPTH_MAX = 8
/** The longest rest, which is all that is not in the list: the API has three short members there. */
const REST_BYTES_MAX = 16_384

/** The name of the list with its bracket; a quote behind a backslash is one inside of another name. */
const LIST_BEGINS = /(?<!\\)"List"\s*:\s*\[$/
/** As its bytes are kept here. */
const BYTE_ORDER_MARK = /^\u00ef\u00bb\u00bf/
/** Nobody puts more space around the colon in good faith. */
const LIST_BEGINS_WITHIN = 64

/** `rest`: outside of the list. `entry`: inside an entry. The others: between two entries. */
type State = 'rest' | 'first' | 'comma' | 'next' | 'entry'

/**
 * Reads the JSON of a long list, {..., "List":[{...}, ...], ...}, as it arrives. JSON.parse of the whole
 * would hold up everybody for as long as it takes, and can make fifty bytes of memory of each byte of a
 * hostile text. So entries are found one by one, bounded in size and depth, and are text until somebody
 * needs them.
 */
export class JsonList {
  #state: State = 'rest'
  /** How many brackets are open in the rest, or in the present entry. */
  #depth = 0
  #isInString = false
  #isEscaped = false
  #rest = ''
  #wasFound = false
  /** The beginning of an entry that is not whole yet. */
  #held: Buffer[] = []
  #heldBytes = 0

  /** Takes the next bytes and gives the texts of the entries that end in them. Throws MalformedAnswer. */
  push(bytes: Buffer): readonly string[] {
    const entries: string[] = []
    /** Where the bytes begin that are kept, of the rest or of an entry. */
    let begin = 0
    for (let at = 0; at < bytes.length; ) {
      if (this.#state === 'entry') {
        at = this.#nextBracket(bytes, at) + 1
        if (at > bytes.length || !this.#endsEntry(bytes[at - 1] ?? 0)) continue
        entries.push(this.#takeEntry(bytes.subarray(begin, at)))
      } else if (this.#state === 'rest') {
        at = this.#nextBracket(bytes, at) + 1
        if (at > bytes.length || !this.#beginsMember(bytes[at - 1] ?? 0)) continue
        this.#keepRest(bytes.subarray(begin, at))
        begin = at
        if (LIST_BEGINS.test(this.#rest.slice(-LIST_BEGINS_WITHIN))) this.#beginList()
      } else {
        const code = bytes[at] ?? 0
        if (!isSpace(code)) this.#state = this.#stateAfter(code)
        // The bracket that ends the list is part of the rest, that of an entry is part of the entry.
        begin = at
        at++
      }
    }
    if (this.#state === 'rest') this.#keepRest(bytes.subarray(begin))
    if (this.#state === 'entry') this.#hold(bytes.subarray(begin))
    return entries
  }

  /** After all bytes: the members beside `List`. Throws MalformedAnswer when there was none, or no end. */
  end(): Readonly<Record<string, unknown>> {
    const parsed = this.#state === 'rest' ? parse(this.#rest.replace(BYTE_ORDER_MARK, '')) : undefined
    if (typeof parsed !== 'object' || parsed === null) throw new MalformedAnswer('sent malformed JSON')
    const { List, ...rest } = parsed as Record<string, unknown>
    // Some devices write null for an empty list.
    if (!this.#wasFound && List === null) return rest
    if (!this.#wasFound || !Array.isArray(List)) throw new MalformedAnswer('sent a list without List')
    return rest
  }

  /** Whether an entry is whole with this bracket. */
  #endsEntry(code: number): boolean {
    this.#depth += opens(code) ? 1 : -1
    if (this.#depth <= ENTRY_DEPTH_MAX) return this.#depth === 0
    throw new MalformedAnswer(`sent a list with an entry nested more than ${ENTRY_DEPTH_MAX} levels deep`)
  }

  /** Whether this bracket begins a member that is a list. */
  #beginsMember(code: number): boolean {
    this.#depth += opens(code) ? 1 : -1
    return code === OPEN_LIST && this.#depth === 2
  }

  #beginList(): void {
    this.#wasFound = true
    this.#state = 'first'
  }

  /** Between two entries; what begins with this byte. */
  #stateAfter(code: number): State {
    // Inside the object that holds the list, or inside the entry.
    this.#depth = 1
    // Some devices write a comma after the last entry.
    if (code === CLOSE_LIST) return 'rest'
    if (code === OPEN_OBJECT && this.#state !== 'comma') return 'entry'
    if (code === COMMA && this.#state === 'comma') return 'next'
    throw new MalformedAnswer('sent a list with an entry that is not an object')
  }

  #keepRest(bytes: Buffer): void {
    this.#rest += bytes.toString('latin1')
    if (this.#rest.length > REST_BYTES_MAX) throw new MalformedAnswer('sent a list with too much other data')
  }

  #hold(bytes: Buffer): void {
    this.#heldBytes += bytes.length
    if (this.#heldBytes > ENTRY_BYTES_MAX) throw tooLong()
    // A copy: the bytes are the reader's.
    if (bytes.length > 0) this.#held.push(Buffer.from(bytes))
  }

  #takeEntry(last: Buffer): string {
    if (this.#heldBytes + last.length > ENTRY_BYTES_MAX) throw tooLong()
    const text = this.#held.length === 0 ? last.toString() : Buffer.concat([...this.#held, last]).toString()
    this.#held = []
    this.#heldBytes = 0
    this.#state = 'comma'
    return text
  }

  /** Where the next bracket outside of strings is; bytes.length, or more, when there is none. */
  #nextBracket(bytes: Buffer, from: number): number {
    let isInString = this.#isInString
    let at = this.#isEscaped ? from + 1 : from
    for (; at < bytes.length; at++) {
      const code = bytes[at] ?? 0
      if (code === QUOTE) isInString = !isInString
      else if (isInString) at += code === BACKSLASH ? 1 : 0
      else if (opens(code) || closes(code)) break
    }
    this.#isInString = isInString
    // What is escaped is the first of the next bytes.
    this.#isEscaped = at > bytes.length
    return at
  }
}

function tooLong(): MalformedAnswer {
  return new MalformedAnswer(`sent a list with an entry of more than ${ENTRY_BYTES_MAX} bytes`)
}

/** The parsed value; undefined when the text is no JSON, or nested too deep. */
function parse(latin1: string): unknown {
  // The members beside the list were collected byte by byte.
  const text = Buffer.from(latin1, 'latin1').toString()
  try {
    return nestsTooDeep(text) ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

function opens(code: number): boolean {
  return code === OPEN_OBJECT || code === OPEN_LIST
}

function closes(code: number): boolean {
  return code === CLOSE_OBJECT || code === CLOSE_LIST
}
