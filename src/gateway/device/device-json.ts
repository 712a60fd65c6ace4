/** Parses JSON of a device, which is not trusted: a short text, or a long list while it arrives. */
import { deviceProtocol } from './device-failure.ts'
import { MalformedAnswer } from './response-head.ts'

export const QUOTE = 0x22
export const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
export const COMMA = 0x2c

/** The API's answers have three levels. Deeper nesting may be unsafe to serialize again. */
const DEPTH_MAX = 16

/** Parses a device's JSON. Fails with device-protocol if it is malformed or nested too deep. */
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

/** ECMAScript's JSON.rawJSON and the third argument of a reviver, which the type declarations lack so far. */
const rawJson = (JSON as unknown as { rawJSON(text: string): object }).rawJSON
type ExactReviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown

/**
 * Keeps numbers beyond 2^53, such as nanoseconds, as they are written, so that JSON.stringify writes them unchanged.
 * Fails with a SyntaxError.
 */
export function parseExactly(json: string): unknown {
  const exactly: ExactReviver = (_name, value, { source }) =>
    typeof value === 'number' && source !== undefined && !Number.isSafeInteger(value)
      ? rawJson(source)
      : value
  return JSON.parse(json, exactly as (key: string, value: unknown) => unknown)
}

/** Considers only brackets outside strings, so that it needs no stack, however deep they are nested. */
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
/** Maximum size of everything outside the list: the API has three short members there. */
const REST_BYTES_MAX = 16_384

/** The name of the list with its bracket; a quote after a backslash is part of another name. */
const LIST_BEGINS = /(?<!\\)"List"\s*:\s*\[$/
/** In latin1, because the bytes are kept in that form here. */
const BYTE_ORDER_MARK = /^\u00ef\u00bb\u00bf/
/** No legitimate device puts more space around the colon. */
const LIST_BEGINS_WITHIN = 64

/** `rest`: outside the list. `entry`: inside an entry. The others: between two entries. */
type State = 'rest' | 'first' | 'comma' | 'next' | 'entry'

/**
 * Parses the JSON of a long list, {..., "List":[{...}, ...], ...}, as it arrives. A JSON.parse of the whole would
 * block the process for as long as it takes, and can use fifty bytes of memory per byte of a hostile text. So entries
 * are found one by one, limited in size and depth, and stay text until they are needed.
 */
export class JsonList {
  #state: State = 'rest'
  /** Number of open brackets in the rest, or in the current entry. */
  #depth = 0
  #isInString = false
  #isEscaped = false
  #rest = ''
  #wasFound = false
  /** The beginning of an incomplete entry. */
  #held: Buffer[] = []
  #heldBytes = 0

  /** Consumes the next bytes and returns the texts of the entries that end in them. Throws MalformedAnswer. */
  push(bytes: Buffer): readonly string[] {
    const entries: string[] = []
    /** Start of the bytes to keep, of the rest or of an entry. */
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
        // The bracket that ends the list belongs to the rest; that of an entry belongs to the entry.
        begin = at
        at++
      }
    }
    if (this.#state === 'rest') this.#keepRest(bytes.subarray(begin))
    if (this.#state === 'entry') this.#hold(bytes.subarray(begin))
    return entries
  }

  /**
   * Call this after all bytes: returns the members other than `List`. Throws MalformedAnswer if there was no list, or
   * it did not end.
   */
  end(): Readonly<Record<string, unknown>> {
    const parsed = this.#state === 'rest' ? parse(this.#rest.replace(BYTE_ORDER_MARK, '')) : undefined
    if (typeof parsed !== 'object' || parsed === null) throw new MalformedAnswer('sent malformed JSON')
    const { List, ...rest } = parsed as Record<string, unknown>
    // Some devices send null for an empty list.
    if (!this.#wasFound && List === null) return rest
    if (!this.#wasFound || !Array.isArray(List)) throw new MalformedAnswer('sent a list without List')
    return rest
  }

  /** Whether this bracket completes an entry. */
  #endsEntry(code: number): boolean {
    this.#depth += opens(code) ? 1 : -1
    if (this.#depth <= ENTRY_DEPTH_MAX) return this.#depth === 0
    throw new MalformedAnswer(`sent a list with an entry nested more than ${ENTRY_DEPTH_MAX} levels deep`)
  }

  /** Whether this bracket starts a member that is a list. */
  #beginsMember(code: number): boolean {
    this.#depth += opens(code) ? 1 : -1
    return code === OPEN_LIST && this.#depth === 2
  }

  #beginList(): void {
    this.#wasFound = true
    this.#state = 'first'
  }

  /** The next state for this byte, between two entries. */
  #stateAfter(code: number): State {
    // Inside the object that holds the list, or inside the entry.
    this.#depth = 1
    // Some devices put a comma after the last entry.
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
    // Copied, because the reader reuses its buffer.
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

  /** Position of the next bracket outside strings; bytes.length or more if there is none. */
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
    // The escaped character is the first of the next bytes.
    this.#isEscaped = at > bytes.length
    return at
  }
}

function tooLong(): MalformedAnswer {
  return new MalformedAnswer(`sent a list with an entry of more than ${ENTRY_BYTES_MAX} bytes`)
}

/** The parsed value, or undefined if the text is not JSON or is nested too deep. */
function parse(latin1: string): unknown {
  // The members other than the list were collected byte by byte.
  const text = Buffer.from(latin1, 'latin1').toString()
  try {
    return nestsTooDeep(text) ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

export function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

export function opens(code: number): boolean {
  return code === OPEN_OBJECT || code === OPEN_LIST
}

export function closes(code: number): boolean {
  return code === CLOSE_OBJECT || code === CLOSE_LIST
}
