/**
 * One line of Suricata's eve.json, of a log of Zeek in JSON, or of text (flow-text.ts), as a conversation with its time.
 * Any line with addresses and a time is accepted, whatever its event type or log.
 */
import { CapfleetError } from '../../base/error.ts'
import { quote } from '../query-parameters.ts'
import { parseQueryTime } from '../time/query-time.ts'
import { type Flow, readFlow } from './flow-filter.ts'
import { readFlowText, type WrittenFlow } from './flow-text.ts'
import type { Pivot } from './pivot.ts'

export interface Alert extends Pivot {
  /** Its signature or note, for people: any text of the network may be in it. */
  readonly title: string
}

/** A line whose event concerns no address, such as Suricata's statistics. */
export interface WithoutAddress {
  readonly about: string
}

/** Field names are as in the log; those of nested objects have a dot. */
type Fields = ReadonlyMap<string, unknown>

/** `zone` is for times without one; undefined: they are refused. Fails with bad-parameter that names the field. */
export function readAlertLine(line: string, zone: string | undefined): Alert | WithoutAddress {
  if (!line.trimStart().startsWith('{')) return writtenAlert(line, zone)
  const fields = fieldsOf(line)
  const alert = fields.has('event_type') ? suricataAlert(fields, zone) : zeekAlert(fields, zone)
  if (alert !== undefined) return alert
  throw bad(
    'it is neither an event of Suricata (event_type, timestamp, src_ip, ...) nor a line of a log of Zeek in JSON (ts, id.orig_h, ...)',
  )
}

/** As readFlowText(); errors also say what is accepted. */
export function readWrittenFlow(line: string, zone: string | undefined): WrittenFlow {
  try {
    return readFlowText(line, zone)
  } catch (error) {
    if (!(error instanceof CapfleetError)) throw error
    throw bad(
      `${error.message}; a line is JSON (for Zeek, set LogAscii::use_json), or is like "2026-11-02T09:01:27Z tcp 192.0.2.1:51234 -> 203.0.113.9:443"`,
    )
  }
}

function writtenAlert(line: string, zone: string | undefined): Alert {
  const { flow, atNs, title } = readWrittenFlow(line, zone)
  if (atNs === undefined) throw bad('it has no time')
  return { flow, firstNs: atNs, lastNs: atNs, isTunnelled: false, title: title || 'a conversation' }
}

function fieldsOf(line: string): Fields {
  let parsed: unknown
  try {
    parsed = JSON.parse(line)
  } catch {
    throw bad('it is not a whole JSON object')
  }
  if (!isRecord(parsed)) throw bad('it is no JSON object')
  const nested = Object.entries(parsed).flatMap(([name, value]): [string, unknown][] =>
    isRecord(value) ? Object.entries(value).map(([inner, text]) => [`${name}.${inner}`, text]) : [],
  )
  return new Map([...nested, ...Object.entries(parsed)])
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const SURICATA = {
  source: 'src_ip',
  destination: 'dest_ip',
  protocol: 'proto',
  sourcePort: 'src_port',
  destinationPort: 'dest_port',
} as const

function suricataAlert(fields: Fields, zone: string | undefined): Alert | WithoutAddress {
  const kind = textOf(fields, 'event_type') ?? ''
  const flow = flowOf(fields, SURICATA)
  if (flow === undefined) return { about: `event_type ${quote(kind)}` }
  const atNs = instantOf(fields, 'timestamp', zone)
  // An alert may come long after the start of its flow, and an event of a flow after its end.
  const instants = ['flow.start', 'flow.end', 'netflow.start', 'netflow.end']
    .filter((name) => fields.has(name))
    .map((name) => instantOf(fields, name, zone))
  return {
    flow,
    firstNs: least([atNs, ...instants]),
    lastNs: most([atNs, ...instants]),
    isTunnelled: isRecord(fields.get('tunnel')),
    title: textOf(fields, 'alert.signature') ?? kind,
  }
}

const ZEEK = {
  source: 'id.orig_h',
  destination: 'id.resp_h',
  protocol: 'proto',
  sourcePort: 'id.orig_p',
  destinationPort: 'id.resp_p',
} as const

/** A notice without a connection has a source, and perhaps a destination and a port. */
const ZEEK_NOTICE = {
  source: 'src',
  destination: 'dst',
  protocol: 'proto',
  sourcePort: '',
  destinationPort: 'p',
} as const

function zeekAlert(fields: Fields, zone: string | undefined): Alert | WithoutAddress | undefined {
  if (!fields.has('ts')) return undefined
  const title = [textOf(fields, 'note'), textOf(fields, 'msg')]
    .filter((text) => text !== undefined)
    .join(': ')
  const about = title || (textOf(fields, '_path') ?? 'a connection')
  const flow = flowOf(withNumber(fields), ZEEK) ?? flowOf(fields, ZEEK_NOTICE)
  if (flow === undefined) return { about: quote(about) }
  const firstNs = instantOf(fields, 'ts', zone)
  const parents = fields.get('tunnel_parents')
  return {
    flow,
    firstNs,
    lastNs: firstNs + durationNs(fields),
    isTunnelled: Array.isArray(parents) && parents.length > 0,
    title: about,
  }
}

/** Newer versions have the number of the IP protocol too, and only that of those that Zeek has no name for. */
function withNumber(fields: Fields): Fields {
  if (textOf(fields, 'proto') !== 'unknown_transport') return fields
  return new Map([...fields, ['proto', fields.get('ip_proto')]])
}

function durationNs(fields: Fields): bigint {
  const given = fields.get('duration')
  if (given === undefined || given === null) return 0n
  const seconds = Number(given)
  if (seconds >= 0 && seconds < DURATION_MAX_S) return BigInt(Math.ceil(seconds * 1e9))
  throw bad(`duration must be a number of seconds, got ${quote(String(given))}`)
}

/** The range of times that PCAP has. */
const DURATION_MAX_S = 2 ** 32

type FlowNames = Readonly<
  Record<'source' | 'destination' | 'protocol' | 'sourcePort' | 'destinationPort', string>
>

/** undefined if neither end has an address. */
function flowOf(fields: Fields, names: FlowNames): Flow | undefined {
  const named = (key: keyof FlowNames) => ({ name: names[key], text: textOf(fields, names[key]) })
  if (named('source').text === undefined && named('destination').text === undefined) return undefined
  return readFlow({
    source: named('source'),
    destination: named('destination'),
    protocol: named('protocol'),
    sourcePort: named('sourcePort'),
    destinationPort: named('destinationPort'),
  })
}

/** Numbers keep their digits: an epoch time with microseconds is exact in a double. */
function textOf(fields: Fields, name: string): string | undefined {
  const value = fields.get(name)
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

function instantOf(fields: Fields, name: string, zone: string | undefined): bigint {
  const text = textOf(fields, name)
  if (text === undefined) throw bad(`${name} is missing`)
  // Times such as "now" or "-15m" are for people.
  if (!/^\d/.test(text))
    throw bad(`${name} must be a date with a time, or seconds since 1970, got ${quote(text)}`)
  const time = parseQueryTime(text, {
    parameter: name,
    unit: undefined,
    zone: zone ?? 'UTC',
    nowNs: BigInt(Date.now()) * 1_000_000n,
    isEnd: false,
  })
  if (!time.isLocal || zone !== undefined) return time.ns
  throw bad(`${name} ${quote(text)} has no time zone; give it with --zone`)
}

function least(instants: readonly bigint[]): bigint {
  return instants.reduce((one, other) => (other < one ? other : one))
}

function most(instants: readonly bigint[]): bigint {
  return instants.reduce((one, other) => (other > one ? other : one))
}

function bad(problem: string): CapfleetError {
  return new CapfleetError('bad-parameter', problem)
}
