/** Parameters of the API as flags: one for each row, so that the two cannot diverge. */
import { type Command, Option } from 'commander'
import type { Parameter, ParameterRows } from '../../../shared/query/query-parameters.ts'
import { usageFailure } from '../../client-failure.ts'
import type { QueryPairs } from '../../gateway-client.ts'
import { bytesIn, nanosecondsIn } from '../../typed-amounts.ts'

/** Flags that are shorter than the parameter's name. */
const SHORT_FLAGS: Readonly<Record<string, string>> = {
  Device: '-d',
  TSBegin: '--begin',
  TSEnd: '--end',
  TSUnit: '--unit',
  TSZone: '--zone',
  FilterBPF: '--bpf',
  FilterRE: '--regex',
  FilterAddresses: '--addresses',
}

/** Parameters whose flag names a file with their text, and what the help says about it. */
export const FILE_FLAGS: Readonly<Record<string, string>> = {
  FilterAddresses:
    'keeps the packets that have an address of this file as source or destination: IPv4 and IPv6 addresses and networks, one or more in a ' +
    'line, # begins a comment, at most 10,000; "-": standard input',
}

/** Old spellings, parameters that nobody types, and those that commands set themselves. */
const NOT_FLAGS: ReadonlySet<string> = new Set([
  'from',
  'to',
  'TSUint',
  'rand',
  'Resume',
  'Offset',
  'Digest',
  'Queue',
  'StreamName',
])

interface QueryFlag {
  readonly parameter: Parameter
  readonly option: Option
}

/** The `options` of commander, by the attribute names of its flags. */
export type GivenOptions = Readonly<Record<string, unknown>>

export class QueryFlags {
  readonly #flags: readonly QueryFlag[]

  /** `leftOut` are names of parameters that the command expresses in another way. */
  constructor(tables: readonly ParameterRows[], leftOut: readonly string[] = []) {
    this.#flags = tables
      .flatMap((rows): Parameter[] => Object.values(rows))
      .filter(
        ({ name, deviceOnly }) => deviceOnly !== true && !NOT_FLAGS.has(name) && !leftOut.includes(name),
      )
      .map((parameter) => ({ parameter, option: optionOf(parameter) }))
  }

  /** `groupOf` returns the heading of a parameter in the help. */
  addTo(command: Command, groupOf?: (name: string) => string): Command {
    for (const { parameter, option } of this.#flags)
      command.addOption(groupOf === undefined ? option : option.helpGroup(groupOf(parameter.name)))
    return command
  }

  /**
   * The given parameters, as text for the gateway, which validates them; "10MiB" and "10ms" are converted. Fails with a
   * ClientFailure for an amount that is none.
   */
  query(options: GivenOptions): QueryPairs {
    return this.#flags.flatMap(({ parameter, option }) => {
      const given = options[option.attributeName()]
      if (given === true) return [[parameter.name, parameter.type.write(true)] as const]
      return typeof given === 'string' ? [[parameter.name, plainAmount(given, parameter)] as const] : []
    })
  }

  /** The flag that a user would write for this parameter. */
  readonly flagOf = (name: string): string | undefined => {
    const found = this.#flags.find(({ parameter }) => parameter.name === name)
    return found === undefined ? undefined : flagName(name)
  }
}

/** How the help shows amounts that may have a unit. */
const AMOUNTS: Readonly<Record<string, { readonly placeholder: string; readonly example: string }>> = {
  bytes: { placeholder: 'size', example: '10KiB' },
  nanoseconds: { placeholder: 'time', example: '10ms' },
}

/** The number that the API takes. */
function plainAmount(text: string, { name, type: { unit = '' } }: Parameter): string {
  const amount = AMOUNTS[unit]
  if (amount === undefined || /^-?\d+$/.test(text)) return text
  const read = unit === 'bytes' ? bytesIn(text) : nanosecondsIn(text)
  if (read !== undefined) return String(read)
  throw usageFailure(
    `${flagName(name)} must be a number of ${unit}, or have a unit, such as ${amount.example}; got ${JSON.stringify(text)}`,
  )
}

/** TSBegin is --ts-begin, FilterBPFDecap --filter-bpf-decap. */
export function longFlag(name: string): string {
  const words = name.replaceAll(/([a-z\d])([A-Z])/g, '$1-$2').replaceAll(/([A-Z]+)([A-Z][a-z])/g, '$1-$2')
  return `--${words.toLowerCase()}`
}

/** The short name if there is one. */
function flagName(name: string): string {
  const short = SHORT_FLAGS[name]
  return short?.startsWith('--') === true ? short : longFlag(name)
}

function optionOf(parameter: Parameter): Option {
  const short = SHORT_FLAGS[parameter.name]
  const flags = `${short === undefined ? '' : `${short}, `}${longFlag(parameter.name)}`
  if (isSwitch(parameter)) return new Option(flags, helpOf(parameter))
  return new Option(`${flags} <${placeholderOf(parameter)}>`, helpOf(parameter))
}

/**
 * Whether the parameter is a switch: true or absent. One that takes a single other word is written with it: `--until
 * next`.
 */
function isSwitch({ default: normal, type: { schema } }: Parameter): boolean {
  return normal === false && schema.enum?.length !== 1
}

function placeholderOf({ name, type: { schema, unit } }: Parameter): string {
  if (name in FILE_FLAGS) return 'file'
  if (unit !== undefined) return AMOUNTS[unit]?.placeholder ?? unit.replaceAll(' ', '-')
  if (schema.enum !== undefined) return 'word'
  return schema.type === 'integer' ? 'number' : 'text'
}

/**
 * Replaces names of parameters in the text by flags, and drops headers, which only matter for those who write
 * requests.
 */
function helpOf(parameter: Parameter): string {
  const { name, says, type, example, defaultSays } = parameter
  const ofFile = FILE_FLAGS[name]
  if (ofFile !== undefined) return ofFile
  const words = isSwitch(parameter) ? undefined : type.schema.enum
  const amount = AMOUNTS[type.unit ?? '']
  const notes = [
    ...(words === undefined ? [] : [words.join(', ')]),
    ...(example === undefined ? [] : [`such as ${example}`]),
    ...(amount === undefined ? [] : [`${type.unit}, or such as ${amount.example}`]),
    ...(defaultSays === undefined ? [] : [`without it: ${defaultSays}`]),
  ]
  const sentences = says.split(/(?<=\.) /).filter((sentence) => !sentence.includes(' header Capfleet-'))
  return `${inFlags(sentences.join(' '))}${notes.length === 0 ? '' : ` (${inFlags(notes.join('; '))})`}`
}

/** A word of the API has two capitals, or a capital after a lower-case letter; some are as written. */
function inFlags(text: string): string {
  return text.replaceAll(
    /\b(Dedup|Slice|TS[A-Z][a-z]+|Filter[A-Z]\w+|Max[A-Z]\w+|Part[A-Z]\w+|Cron|Lifetime|Verify)\b(=1\b)?/g,
    (_text, name: string) => flagName(name),
  )
}
