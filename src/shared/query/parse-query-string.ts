import { CapfleetError } from '../base/error.ts'
import { quote } from './query-parameters.ts'

/** More parameters than any request needs; limits the cost of hostile addresses. */
const MAX_PAIRS = 64
/** Longer than any name, also of other products. Errors and headers repeat names. */
const NAME_MAX = 128
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROL = /[\x00-\x1f\x7f]/

/** Lists of which each value is a part, so that they may be given in several. */
const LIST_NAMES: ReadonlySet<string> = new Set(['Address'])

/**
 * The parameters of a raw query string (without "?"), decoded, in order. Empty pairs ("&&", a trailing "&") are
 * skipped and "+" is a space: existing scripts send both. The values of a repeated list are joined by lines. Fails with
 * bad-parameter for a malformed %XX and for any other repeated name.
 */
export function parseQueryString(raw: string): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const pair of raw.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode(equals < 0 ? pair : pair.slice(0, equals), 'the name of a parameter')
    if (name === '') {
      throw new CapfleetError('bad-parameter', `${quote(pair)} has no parameter name; write name=value`, {
        param: '',
      })
    }
    if (name.length > NAME_MAX || CONTROL.test(name)) {
      throw new CapfleetError(
        'bad-parameter',
        `${quote(name)} is not the name of a parameter; write & in a value as %26`,
        { param: '' },
      )
    }
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1), name)
    const before = parameters.get(name)
    if (before !== undefined && LIST_NAMES.has(name)) {
      parameters.set(name, `${before}\n${value}`)
      continue
    }
    if (before !== undefined) {
      throw new CapfleetError('bad-parameter', `${name} is given twice; give it only once`, { param: name })
    }
    if (parameters.size === MAX_PAIRS) {
      throw new CapfleetError(
        'bad-parameter',
        `more than ${MAX_PAIRS} parameters; "${name}" is one too many`,
        {
          param: name,
        },
      )
    }
    parameters.set(name, value)
  }
  return parameters
}

/**
 * The same query string for a device of any maker: some treat "+" literally, and would take it for part of a capture's
 * name.
 */
export function withoutPluses(raw: string): string {
  return raw.replaceAll('+', '%20')
}

function decode(text: string, parameter: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    const position = text.search(/%(?![0-9A-Fa-f]{2})/)
    const where = position < 0 ? '' : ` at character ${position}`
    throw new CapfleetError(
      'bad-parameter',
      `${parameter} contains a malformed percent sequence${where}; write a literal % as %25 and text as UTF-8`,
      { param: parameter, position: position < 0 ? undefined : position, cause },
    )
  }
}
