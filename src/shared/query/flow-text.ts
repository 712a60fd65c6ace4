/**
 * A conversation as people and sensors write it in one line: `tcp 192.0.2.1:51234 -> 203.0.113.9:443`, with its time or
 * without it, and a line of fast.log (Suricata, Snort).
 */
import { CapfleetError } from '../base/error.ts'
import { type Flow, readFlow } from './flow-filter.ts'
import { ipProtocolNumber } from './ip-protocols.ts'
import { quote } from './query-parameters.ts'
import { parseQueryTime } from './query-time.ts'

export interface WrittenFlow {
  readonly flow: Flow
  /** undefined: the line has no time. */
  readonly atNs: bigint | undefined
  /** The message of a line of fast.log, or "". */
  readonly title: string
}

/** An address as it is written, with the port that is written with it or after it. */
interface End {
  readonly host: string
  port: string | undefined
}

const MESSAGE = /\[\*\*\]([^\n]{0,2000}?)\[\*\*\]/
/** Month first, and in the time of the sensor. */
const FAST_LOG_TIME = /(\d\d)\/(\d\d)\/(\d{4})-(\d\d:\d\d:\d\d(?:\.\d{1,9})?)/
const DATE_TIME = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?/
const EPOCH_TIME = /(?:^|[\s,;])(\d{9,10}\.\d{1,9}|\d{10}|\d{13}|\d{16}|\d{19})(?=$|[\s,;])/
const SEPARATORS = /[\s,;|={}()<>"'→]+/
/** They say nothing that the order does not say. */
const LABELS: ReadonlySet<string> = new Set(
  '- src source from orig dst dest destination to resp ip host address addr port sport dport src_ip src_port dst_ip dst_port dest_ip dest_port proto protocol time timestamp at and'.split(
    ' ',
  ),
)

/** `zone` as for readAlertLine(). Fails with bad-parameter that names the word that is not understood. */
export function readFlowText(line: string, zone: string | undefined): WrittenFlow {
  const title = MESSAGE.exec(line)?.[1]?.trim() ?? ''
  const { atNs, rest } = withoutTime(withoutLabels(line.replace(MESSAGE, ' ')), zone)
  const ends: End[] = []
  const ports: string[] = []
  let protocol: string | undefined
  for (const written of rest.split(SEPARATORS)) {
    const word = written.endsWith('::') ? written : written.replace(/[-:]$/, '')
    if (word === '' || LABELS.has(word.toLowerCase())) continue
    const end = endOf(word)
    const last = ends.at(-1)
    if (end !== undefined) ends.push(end)
    else if (isPort(word)) {
      if (last !== undefined && last.port === undefined && ports.length === 0) last.port = word
      else ports.push(word)
    } else if (protocol === undefined && ipProtocolNumber(word) !== undefined) protocol = word
    else throw bad(`${quote(word)} is not understood`)
  }
  const [source, destination, ...others] = ends
  if (source === undefined) throw bad('it has no address')
  if (others.length > 0) throw bad('it has more than two addresses')
  settlePorts(source, destination, ports)
  const named = (name: string, text: string | undefined) => ({ name, text })
  const flow = readFlow({
    source: named('the source', source.host),
    destination: named('the destination', destination?.host),
    protocol: named('the protocol', protocol),
    sourcePort: named('the source port', source.port),
    destinationPort: named('the destination port', destination?.port),
  })
  return { flow, atNs, title }
}

/** Without what is like "[Priority: 2]". */
function withoutLabels(line: string): string {
  const [last = '', ...parts] = line.split(']').toReversed()
  const bare = parts.toReversed().map((part) => {
    const from = part.lastIndexOf('[')
    const isLabel = from >= 0 && /^[A-Za-z]{1,30}: /.test(part.slice(from + 1))
    return isLabel ? `${part.slice(0, from)} ` : `${part}]`
  })
  return bare.join('') + last
}

/** After two addresses, two ports are those of the source and of the destination, in this order. */
function settlePorts(source: End, destination: End | undefined, ports: readonly string[]): void {
  if (ports.length === 0) return
  const isInOrder = ports.length === 1 && source.port === undefined && destination?.port !== undefined
  if (!isInOrder) throw bad(`it is not clear what ${quote(ports.join(' '))} is`)
  source.port = destination.port
  destination.port = ports[0]
}

function withoutTime(
  line: string,
  zone: string | undefined,
): { readonly atNs: bigint | undefined; readonly rest: string } {
  const fast = FAST_LOG_TIME.exec(line)
  if (fast !== null) {
    const [whole, month, day, year, time] = fast
    return { atNs: instantOf(`${year}-${month}-${day}T${time}`, zone), rest: line.replace(whole, ' ') }
  }
  const [written = ''] = DATE_TIME.exec(line) ?? []
  const text = written === '' ? (EPOCH_TIME.exec(line)?.[1] ?? '') : written
  if (text === '') return { atNs: undefined, rest: line }
  return { atNs: instantOf(text, zone), rest: line.replace(text, ' ') }
}

function instantOf(text: string, zone: string | undefined): bigint {
  const time = parseQueryTime(text, {
    parameter: 'the time',
    unit: undefined,
    zone: zone ?? 'UTC',
    nowNs: BigInt(Date.now()) * 1_000_000n,
    isEnd: false,
  })
  if (!time.isLocal || zone !== undefined) return time.ns
  throw bad(`the time ${quote(text)} has no time zone; give it with --zone`)
}

/** undefined: the word is no address. An IPv6 address with a port has brackets. */
function endOf(word: string): End | undefined {
  const bracketed = /^\[([0-9A-Fa-f:.]{2,45})\](?::(\d{1,5}))?$/.exec(word)
  if (bracketed !== null) return { host: bracketed[1] ?? '', port: bracketed[2] }
  const four = /^(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?::(\d{1,5}))?$/.exec(word)
  if (four !== null) return { host: four[1] ?? '', port: four[2] }
  return /^[0-9A-Fa-f:]{0,39}:[0-9A-Fa-f:.]{0,39}$/.test(word) && word.split(':').length > 2
    ? { host: word, port: undefined }
    : undefined
}

function isPort(word: string): boolean {
  return /^\d{1,5}$/.test(word)
}

function bad(problem: string): CapfleetError {
  return new CapfleetError('bad-parameter', problem)
}
