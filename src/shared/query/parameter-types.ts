/** Types of parameters: integers, words, switches, names and other texts. */
import {
  ASKED_NAME_BYTES_MAX,
  ASKED_NAME_RULE,
  FILE_NAME_BYTES_MAX,
  isAskedName,
  mistakeInFileName,
} from './capture-name-rule.ts'
import { badParameter, type ParameterType, quote } from './query-parameters.ts'

export const INTEGER_MAX = 2n ** 63n - 1n
const LINE_CHARACTERS_MAX = 500

const NS_PER_UNIT = { s: 1_000_000_000n, m: 60_000_000_000n, h: 3_600_000_000_000n, d: 86_400_000_000_000n }
type DurationUnit = keyof typeof NS_PER_UNIT
export const NS_PER_DAY = NS_PER_UNIT.d

/** An integer `^\d+(ULL)?$` from `min` to `max`: scripts append the suffix of C. */
export function integerType(min: bigint, max: bigint, unit?: string): ParameterType<bigint> {
  return {
    schema: { type: 'integer', minimum: min, maximum: max },
    unit,
    read: (text, name) => {
      const value = /^\d{1,20}(ULL)?$/.test(text) ? BigInt(text.replace('ULL', '')) : undefined
      if (value !== undefined && value >= min && value <= max) return value
      throw badParameter(name, `must be an integer from ${min} to ${max}, got ${quote(text)}`)
    },
    write: String,
  }
}

/** The same for values that a number represents exactly. */
export function numberType(min: number, max: number, unit?: string): ParameterType<number> {
  const integer = integerType(BigInt(min), BigInt(max), unit)
  return {
    ...integer,
    read: (text, name, context) => Number(integer.read(text, name, context)),
    write: String,
  }
}

/** One of `words`, exactly as spelled there. */
export function choiceType<const Word extends string>(words: readonly Word[]): ParameterType<Word> {
  return {
    schema: { type: 'string', enum: words },
    read: (text, name) => {
      const choice = words.find((word) => word === text)
      if (choice !== undefined) return choice
      throw badParameter(name, `must be one of ${words.join(', ')}, got ${quote(text)}`)
    },
    write: (word) => word,
  }
}

/**
 * A boolean: any of `words`, of which those in `trueWords` mean true. The first word for each value is the one
 * written.
 */
function booleanType(words: readonly string[], trueWords: readonly string[]): ParameterType<boolean> {
  const { schema, read } = choiceType(words)
  return {
    schema,
    read: (text, name, context) => trueWords.includes(read(text, name, context) ?? ''),
    write: (value) => words.find((word) => trueWords.includes(word) === value) ?? '',
  }
}

/** 1 or true, 0 or false. */
export const SWITCH = booleanType(['1', '0', 'true', 'false'], ['1', 'true'])

/** The same, written as a word, which is what third-party devices know. */
export const TRUE_FALSE = booleanType(['true', 'false', '1', '0'], ['true', '1'])

/** A word that is present or absent. */
export function wordType(word: string): ParameterType<boolean> {
  return booleanType([word], [word])
}

/** A text that is validated elsewhere. */
export const TEXT: ParameterType<string> = {
  schema: { type: 'string' },
  read: (text) => text,
  write: (text) => text,
}

/** A text that matches `pattern`. `rule` describes that in words: "must be ...". */
export function patternType(pattern: RegExp, rule: string): ParameterType<string> {
  return {
    // Other languages spell named groups differently.
    schema: { type: 'string', pattern: pattern.source.replaceAll(/\(\?<\w+>/g, '(') },
    read: (text, name) => {
      if (pattern.test(text)) return text
      throw badParameter(name, `${rule}, got ${quote(text)}`)
    },
    write: (text) => text,
  }
}

/** The name of a capture on a device, whatever naming scheme its maker uses. */
export const CAPTURE_NAME_TYPE: ParameterType<string> = {
  schema: { type: 'string', maxLength: ASKED_NAME_BYTES_MAX },
  read: (text, name) => {
    if (isAskedName(text)) return text
    throw badParameter(name, `${ASKED_NAME_RULE}, got ${quote(text)}`)
  },
  write: (text) => text,
}

/** The name of a file, without a folder. */
export const FILE_NAME_TYPE: ParameterType<string> = {
  schema: { type: 'string', maxLength: FILE_NAME_BYTES_MAX },
  read: (text, name) => {
    const mistake = mistakeInFileName(text, quote(text))
    if (mistake === undefined) return text
    throw badParameter(name, mistake)
  },
  write: (text) => text,
}

/** "90s", "15m", "1h", "2d" in nanoseconds. */
export function durationType(minNs: bigint, maxNs: bigint): ParameterType<bigint> {
  return {
    schema: { type: 'string', pattern: '^[1-9][0-9]{0,8}[smhd]$' },
    read: (text, name) => {
      const [, count = '', unit = ''] = /^([1-9]\d{0,8})([smhd])$/.exec(text) ?? []
      const ns = count === '' ? undefined : BigInt(count) * NS_PER_UNIT[unit as DurationUnit]
      if (ns !== undefined && ns >= minNs && ns <= maxNs) return ns
      throw badParameter(
        name,
        `must be a length of time up to ${durationText(maxNs)}, such as 90s, 15m or 1h, got ${quote(text)}`,
      )
    },
    write: durationText,
  }
}

function durationText(ns: bigint): string {
  const units = Object.entries(NS_PER_UNIT).toReversed()
  const [unit = 's', unitNs = NS_PER_UNIT.s] = units.find(([, size]) => ns % size === 0n) ?? []
  return `${ns / unitNs}${unit}`
}

/** A single line of text from a user, which goes into logs and manifests unescaped. */
export function lineType(): ParameterType<string> {
  return {
    schema: { type: 'string', maxLength: LINE_CHARACTERS_MAX },
    read: (text, name) => {
      if (text.trim() === '') return undefined
      if (text.length > LINE_CHARACTERS_MAX)
        throw badParameter(name, `is longer than ${LINE_CHARACTERS_MAX} characters; shorten it`)
      if (/\p{Cc}/u.test(text)) throw badParameter(name, 'contains a control character; remove it')
      return text
    },
    write: (text) => text,
  }
}
