/** The parameters for ordering a token or a ticket. */
import { SCOPES, type Scope } from '../base/scopes.ts'
import { isEnclosed } from '../query/filter/joined-filter.ts'
import { durationType, lineType, NS_PER_DAY, numberType, TEXT } from '../query/parameter-types.ts'
import { badParameter, type ParameterRows, type ParameterType, quote } from '../query/query-parameters.ts'
import { TIME_FORMS_WITHOUT_UNIT } from '../query/time/list-times.ts'

const TICKET_LIFETIME_MAX_S = 3_600
const NS_PER_S = 1_000_000_000n
/** A longer address does not fit into a request. */
const TARGET_LENGTH_MAX = 65_536

/** Default scopes of a new token on the page and the command line. */
export const USUAL_SCOPES = 'device:read,capture:download'
/** In these forms, these words lift a restriction; an empty field does not. */
const UNRESTRICTED: Readonly<Record<string, string>> = { Scopes: 'all', Devices: '*' }

export const TOKEN_PARAMETERS = {
  lifetimeS: {
    name: 'Lifetime',
    says: 'How long the token is valid: 8h, 30d, or a number of seconds.',
    type: bound(secondsType(366n * NS_PER_DAY)),
    defaultSays: "auth.tokens.lifetimeS, or the rest of the calling token's lifetime",
    example: '8h',
  },
  expires: {
    name: 'Expires',
    says: `When the token expires, instead of Lifetime. ${TIME_FORMS_WITHOUT_UNIT}`,
    type: bound(TEXT),
    defaultSays: 'as Lifetime says',
    example: '2026-12-04T18:00+01:00',
  },
  scopes: {
    name: 'Scopes',
    says: 'The scopes of the token, separated by commas, out of those that you have.',
    type: bound(scopesType()),
    defaultSays: 'all that you have',
    example: 'device:read,capture:download',
  },
  devices: {
    name: 'Devices',
    says: 'The devices that the token may use, out of those that you see, in the form of Device.',
    type: bound(TEXT),
    defaultSays: 'all that you see',
    example: 'nyc*',
  },
  filter: {
    name: 'Filter',
    says: 'A BPF filter, in addition to yours, that all packets sent to users of the token must pass.',
    type: bound(filterType()),
    defaultSays: 'only yours',
    example: 'host 192.0.2.1',
  },
  spanMaxS: {
    name: 'SpanMax',
    says: 'The longest time range of one download or export: 1h, or a number of seconds.',
    type: bound(secondsType(100n * 366n * NS_PER_DAY)),
    defaultSays: 'as yours',
    example: '1h',
  },
  bytesPerDay: {
    name: 'BytesPerDay',
    says: 'Maximum bytes of downloads and export files per day (UTC); they also count towards your own limit.',
    type: bound(numberType(1, Number.MAX_SAFE_INTEGER, 'bytes')),
    defaultSays: 'as yours',
  },
  streamsMax: {
    name: 'StreamsMax',
    says: 'Maximum number of downloads that run or wait at the same time; they also count towards your own limit.',
    type: bound(numberType(1, 1_000_000, 'downloads')),
    defaultSays: 'as yours',
  },
  note: {
    name: 'Note',
    says: 'The purpose of the token, shown in lists.',
    type: lineType(),
    defaultSays: 'none',
  },
} as const satisfies ParameterRows

/** Names that downloads use for the same thing: a restriction must not be lost because of its spelling. */
export const TOKEN_PARAMETER_SPELLINGS = {
  device: {
    ...TOKEN_PARAMETERS.devices,
    name: 'Device',
    says: 'Another spelling of Devices.',
    isOtherSpelling: true,
  },
  filterBpf: {
    ...TOKEN_PARAMETERS.filter,
    name: 'FilterBPF',
    says: 'Another spelling of Filter.',
    isOtherSpelling: true,
  },
} as const satisfies ParameterRows

/** The parameters that order a token as described on the page or the command line. */
export function orderedToken<Pair extends readonly [name: string, value: string]>(
  described: readonly Pair[],
): readonly Pair[] {
  return described.filter(([name, value]) => value !== UNRESTRICTED[name])
}

export const TICKET_PARAMETERS = {
  for: {
    name: 'For',
    says: 'The path and the query of a download, as in a request with credentials.',
    type: { ...TEXT, schema: { type: 'string', maxLength: TARGET_LENGTH_MAX } },
    required: true,
    example: '/api/v1/pcap/timerange?TSBegin=-15m&TSEnd=now',
  },
  lifetimeS: {
    name: 'Lifetime',
    says: 'How long the link is valid: 5m, or a number of seconds up to 3600.',
    type: secondsType(BigInt(TICKET_LIFETIME_MAX_S) * NS_PER_S),
    default: 300,
  },
} as const satisfies ParameterRows

/** An unset variable of a script must not create an unrestricted token. */
function bound<Value>(type: ParameterType<Value>): ParameterType<Value> {
  return { ...type, readsEmpty: true }
}

/** "8h" or a number of seconds, in seconds. */
function secondsType(maxNs: bigint): ParameterType<number> {
  const { schema, read, write } = durationType(NS_PER_S, maxNs)
  return {
    schema: { ...schema, pattern: '^[1-9][0-9]{0,8}[smhd]?$' },
    read: (text, name, context) => {
      const ns = read(/^\d+$/.test(text) ? `${text}s` : text, name, context)
      return ns === undefined ? undefined : Number(ns / NS_PER_S)
    },
    write: (seconds) => write(BigInt(seconds) * NS_PER_S),
  }
}

function scopesType(): ParameterType<readonly Scope[]> {
  return {
    schema: { type: 'string' },
    read: (text, name) => {
      const words = text.split(/[,\s]+/).filter((word) => word !== '')
      const unknown = words.find((word) => !(SCOPES as readonly string[]).includes(word))
      if (unknown !== undefined || words.length === 0)
        throw badParameter(name, `must be scopes of ${SCOPES.join(', ')}, got ${quote(unknown ?? text)}`)
      return SCOPES.filter((scope) => words.includes(scope))
    },
    write: (scopes) => scopes.join(','),
  }
}

/** Only a device can tell whether it compiles. */
function filterType(): ParameterType<string> {
  return {
    ...TEXT,
    read: (text, name) => {
      if (text.trim() === '') throw badParameter(name, 'is empty; remove it, or specify what may pass')
      if (isEnclosed(text)) return text
      throw badParameter(name, 'must have a closing parenthesis for each opening one')
    },
  }
}
