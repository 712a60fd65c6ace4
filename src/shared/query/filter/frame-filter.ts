/**
 * FilterFrame: conditions joined by "and", each `<field> <op> <integers>`. White space is ignored, "and" is
 * case-insensitive, "=" means "==".
 */
import { CapfleetError } from '../../base/error.ts'

/** The fields with the maximum value of each. */
const FIELD_LIMITS = {
  'capture.port': 255,
  'a7130.device': 65_535,
  'a7130.srcdevice': 65_535,
  'a7130.srcport': 255,
  'c3550.srcport': 255,
} as const

export type FrameField = keyof typeof FIELD_LIMITS

/** A value of the field that packets hardly ever have, and that every device accepts. The largest one often means "unknown". */
export function rareValue(field: FrameField): number {
  return FIELD_LIMITS[field] - 1
}

/** `==` keeps packets whose field has one of the values, `!=` those whose field has none of them. */
export interface FrameCondition {
  readonly field: FrameField
  readonly op: '==' | '!='
  /** The values; at least one. */
  readonly values: readonly number[]
}

const TEXT_MAX_CHARACTERS = 4_096

/**
 * All conditions must match; a text of white space has none. Fails with bad-frame-filter, with the position in `text`
 * and what was expected there.
 */
export function parseFrameFilter(text: string): readonly FrameCondition[] {
  if (text.length > TEXT_MAX_CHARACTERS) {
    throw problem(TEXT_MAX_CHARACTERS, `the text has more than ${TEXT_MAX_CHARACTERS} characters; shorten it`)
  }
  const tokens = new Tokens(text)
  if (tokens.isAtEnd) return []
  const conditions = [parseCondition(tokens)]
  while (!tokens.isAtEnd) {
    if (tokens.take(/and(?![\w.])/iy) === undefined) throw tokens.expected('"and", a comma or the end')
    conditions.push(parseCondition(tokens))
  }
  return conditions
}

/** The text that parseFrameFilter parses into the same conditions. */
export function formatFrameFilter(conditions: readonly FrameCondition[]): string {
  return conditions.map(({ field, op, values }) => `${field}${op}${values.join(',')}`).join(' and ')
}

function parseCondition(tokens: Tokens): FrameCondition {
  const field = tokens.take(/[A-Za-z][\w.]*/y, isField)
  if (field === undefined) throw tokens.expected(`one of ${Object.keys(FIELD_LIMITS).join(', ')}`)
  const op = tokens.take(/==|!=|=/y)
  if (op === undefined) throw tokens.expected('==, = or !=')
  const values = [takeValue(tokens, field as FrameField)]
  while (tokens.take(/,/y) !== undefined) values.push(takeValue(tokens, field as FrameField))
  return { field: field as FrameField, op: op === '!=' ? '!=' : '==', values }
}

function isField(word: string): boolean {
  return Object.hasOwn(FIELD_LIMITS, word)
}

function takeValue(tokens: Tokens, field: FrameField): number {
  const limit = FIELD_LIMITS[field]
  const digits = tokens.take(/\d+(?:ULL)?/y, (text) => Number.parseInt(text, 10) <= limit)
  if (digits === undefined) throw tokens.expected(`an integer from 0 to ${limit} for ${field}`)
  return Number.parseInt(digits, 10)
}

/** The text from left to right, without white space. */
class Tokens {
  readonly #text: string
  #position = 0

  constructor(text: string) {
    this.#text = text
    this.#skipSpace()
  }

  /** Where the next token begins, in characters of the text. */
  get position(): number {
    return this.#position
  }

  get isAtEnd(): boolean {
    return this.#position === this.#text.length
  }

  /**
   * Consumes and returns the token if `form` (sticky) matches here and `accepts` agrees; otherwise consumes nothing.
   */
  take(form: RegExp, accepts: (token: string) => boolean = () => true): string | undefined {
    form.lastIndex = this.#position
    const token = form.exec(this.#text)?.[0]
    if (token === undefined || !accepts(token)) return undefined
    this.#position += token.length
    this.#skipSpace()
    return token
  }

  expected(what: string): CapfleetError {
    const rest = this.#text.slice(this.#position, this.#position + 20)
    return problem(this.#position, `expected ${what}, got ${rest === '' ? 'the end' : JSON.stringify(rest)}`)
  }

  #skipSpace(): void {
    while (this.#position < this.#text.length && /\s/.test(this.#text.charAt(this.#position)))
      this.#position++
  }
}

function problem(position: number, message: string): CapfleetError {
  return new CapfleetError('bad-frame-filter', `FilterFrame at character ${position}: ${message}`, {
    param: 'FilterFrame',
    position,
  })
}
