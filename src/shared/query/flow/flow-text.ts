/**
 * A conversation as people and sensors write it in one line: `tcp 192.0.2.1:51234 -> 203.0.113.9:443`, with names of
 * its parts (`src=... dport=...`), with its time or without it, a line of fast.log (Suricata, Snort) or of tcpdump -n.
 */
import { CapfleetError } from '../../base/error.ts'
import { quote } from '../query-parameters.ts'
import { parseQueryTime } from '../time/query-time.ts'
import { type Flow, type NamedText, readFlow } from './flow-filter.ts'

export interface WrittenFlow {
  readonly flow: Flow
  /** undefined: the line has no time. */
  readonly atNs: bigint | undefined
  /** The message of a line of fast.log, or "". */
  readonly title: string
}

const MESSAGE = /\[\*\*\]([^\n]{0,2000}?)\[\*\*\]/
/** What fast.log has in brackets besides, after the bracket. */
const LABELLED = /^(?:(?:Classification|Priority|AppID|Xref): |w?Drop$)/
/** What tcpdump says of a packet follows its addresses. */
const TCPDUMP = /\bIP6? (\S{1,60}) > (\S{1,60}): (Flags \[|UDP)?/
/** Month first, and in the time of the sensor. */
const FAST_LOG_TIME = /(\d\d)\/(\d\d)\/(\d{4})-(\d\d:\d\d:\d\d(?:\.\d{1,9})?)/
/** A fraction after a comma is none if it may be the next column of a table. */
const DATE_TIME =
  /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9}|,(?:\d{9}|\d{6}|\d{3})(?![\d.,]))?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?/
const EPOCH_WITH_FRACTION = /(?:^|[\s,;=])(\d{9,10}\.\d{1,9})(?=$|[\s,;])/
/** Elsewhere, such a number may be anything. */
const EPOCH = /(?:^|\b(?:time|timestamp|ts|at)["']?[\s=:])\s?(\d{10}|\d{13}|\d{16}|\d{19})(?=$|[\s,;"'])/i
const SEPARATORS = /[\s,;|={}()<>"'→]+/
const CLOCK = /^\d\d:\d\d:\d\d(?:\.\d{1,9})?$/

type EndName = 'source' | 'destination'
type Kind = 'host' | 'port'
/** What a name says of the value after it. */
interface Role {
  readonly end?: EndName
  readonly kind?: Kind
  readonly isProtocol?: true
}

const roles = (words: string, role: Role): readonly (readonly [string, Role])[] =>
  words.split(' ').map((word) => [word, role])

const NAMES: ReadonlyMap<string, Role> = new Map([
  ...roles('src source from orig', { end: 'source' }),
  ...roles('dst dest destination to resp', { end: 'destination' }),
  ...roles('src_ip srcip source_ip sip saddr', { end: 'source', kind: 'host' }),
  ...roles('dst_ip dest_ip dstip destip destination_ip dip daddr', { end: 'destination', kind: 'host' }),
  ...roles('sport src_port srcport source_port spt', { end: 'source', kind: 'port' }),
  ...roles('dport dst_port dest_port dstport destport destination_port dpt', {
    end: 'destination',
    kind: 'port',
  }),
  ...roles('host address addr', { kind: 'host' }),
  ...roles('port', { kind: 'port' }),
  ...roles('proto protocol', { isProtocol: true }),
  // They say nothing of the value.
  ...roles('- ip ipv4 ipv6 ip6 time timestamp ts at and', {}),
])
/** Others are as often names of applications. */
const PROTOCOLS: ReadonlySet<string> = new Set(
  'tcp udp sctp icmp icmp6 icmpv6 ipv6-icmp igmp gre esp ah ospf pim vrrp l2tp ipip udplite dccp'.split(' '),
)
const WITH_PORTS: ReadonlySet<string> = new Set(['tcp', 'udp', 'sctp', '6', '17', '132'])
/** What Zeek writes as their ports is the type and the code of a message. */
const WITH_TYPES: ReadonlySet<string> = new Set(['icmp', 'icmp6', 'icmpv6', 'ipv6-icmp', '1', '58'])

/** `zone` as for readAlertLine(). Fails with bad-parameter that names the word that is not understood. */
export function readFlowText(line: string, zone: string | undefined): WrittenFlow {
  if (/<-(?!>)|←/.test(line)) throw bad('an arrow must point from the source to the destination')
  const [message, title = ''] = MESSAGE.exec(line) ?? []
  const isFastLog = message !== undefined
  const bare = isFastLog ? withoutLabels(line.replace(message, ' ')) : withoutFlags(line)
  const { atNs, rest } = withoutTime(bare, zone)
  const words = new WordReader(isFastLog)
  for (const written of rest.split(SEPARATORS)) {
    const word = written.endsWith('::') ? written : written.replace(/[-:]$/, '')
    if (word !== '') words.take(word)
  }
  return { flow: words.flow, atNs, title: title.trim() }
}

/** Puts the words of a line together, each by the name before it, or else by its place. */
class WordReader {
  readonly #isFastLog: boolean
  readonly #hosts: Partial<Record<EndName, string>> = {}
  readonly #ports: Partial<Record<EndName, string>> = {}
  /** Ends in the order in which their hosts were written. */
  readonly #written: EndName[] = []
  /** Ports without a name or a place of their own. */
  readonly #loose: string[] = []
  /** IPv6 addresses whose last part may be a port. */
  readonly #doubtful: { readonly end: EndName; readonly word: string }[] = []
  #protocol: string | undefined
  #role: Role = {}
  /** What the word before was. */
  #before: 'host' | 'port' | 'protocol' | undefined

  constructor(isFastLog: boolean) {
    this.#isFastLog = isFastLog
  }

  take(word: string): void {
    const name = NAMES.get(word.toLowerCase())
    if (name !== undefined) {
      // As in "src host" and "dst port".
      const isMore = name.end === undefined && name.isProtocol === undefined && !this.#role.isProtocol
      this.#role = isMore ? { ...this.#role, ...name } : name
      return
    }
    const role = this.#role
    this.#role = {}
    if (CLOCK.test(word)) throw bad(`the time ${quote(word)} has no date`)
    if (role.isProtocol === true) this.#setProtocol(word)
    else if (isPort(word)) this.#takePort(word, role)
    else if (this.#takeHost(word, role)) this.#before = 'host'
    else if (PROTOCOLS.has(word.toLowerCase()) && role.kind === undefined) this.#setProtocol(word)
    else throw bad(`${quote(word)} is not understood`)
  }

  get flow(): Flow {
    this.#settleLoosePorts()
    const { source, destination } = this.#hosts
    if (source === undefined && destination === undefined) throw bad('it has no address')
    this.#refuseDoubtful()
    const protocol = this.#protocol?.toLowerCase()
    const hasPorts = protocol === undefined || WITH_PORTS.has(protocol) || WITH_TYPES.has(protocol)
    if (!hasPorts && Object.keys(this.#ports).length > 0)
      throw bad(`the protocol ${quote(protocol)} has no ports`)
    const named = (name: string, text: string | undefined): NamedText => ({ name, text })
    return readFlow({
      source: named('the source', source),
      destination: named('the destination', destination),
      protocol: named('the protocol', this.#protocol),
      sourcePort: named('the source port', this.#ports.source),
      destinationPort: named('the destination port', this.#ports.destination),
    })
  }

  #setProtocol(word: string): void {
    if (this.#protocol !== undefined) throw bad(`${quote(word)} is not understood`)
    this.#protocol = word
    this.#before = 'protocol'
  }

  #takePort(word: string, { end, kind }: Role): void {
    if (kind === 'host' || (end !== undefined && kind !== 'port'))
      throw bad(`${quote(word)} is not an address`)
    const last = this.#written.at(-1)
    // Such as the length of a packet.
    const isUnclear = this.#before !== 'host' && this.#before !== 'port' && kind === undefined
    if (isUnclear) throw bad(`it is not clear what ${quote(word)} is`)
    this.#before = 'port'
    if (end !== undefined) this.#setPort(end, word)
    else if (last !== undefined && this.#ports[last] === undefined && this.#loose.length === 0)
      this.#setPort(last, word)
    else this.#loose.push(word)
  }

  #setPort(end: EndName, port: string): void {
    if (this.#ports[end] !== undefined) throw bad(`it is not clear what ${quote(port)} is`)
    this.#ports[end] = port
  }

  /** Whether the word is an address. */
  #takeHost(word: string, { end, kind }: Role): boolean {
    const found = hostIn(word, this.#isFastLog)
    if (found === undefined) return false
    if (kind === 'port') throw bad(`${quote(word)} is not a port`)
    const free = (['source', 'destination'] as const).find((name) => this.#hosts[name] === undefined)
    const at = end ?? free
    if (at === undefined) throw bad('it has more than two addresses')
    if (this.#hosts[at] !== undefined) throw bad(`it has two addresses of the ${at}`)
    this.#hosts[at] = found.host
    this.#written.push(at)
    if (found.port !== undefined) this.#setPort(at, found.port)
    if (found.mayEndWithPort) this.#doubtful.push({ end: at, word })
    return true
  }

  /** After two addresses, two ports are those of the first and of the second, in this order. */
  #settleLoosePorts(): void {
    if (this.#loose.length === 0) return
    const [first, second] = this.#written
    const [port = '', ...others] = this.#loose
    const isInOrder =
      first !== undefined &&
      second !== undefined &&
      others.length === 0 &&
      this.#ports[first] === undefined &&
      this.#ports[second] !== undefined
    if (!isInOrder) throw bad(`it is not clear what ${quote(this.#loose.join(' '))} is`)
    this.#ports[first] = this.#ports[second] ?? ''
    this.#ports[second] = port
  }

  #refuseDoubtful(): void {
    const protocol = this.#protocol?.toLowerCase()
    if (protocol !== undefined && !WITH_PORTS.has(protocol)) return
    for (const { end, word } of this.#doubtful) {
      if (this.#ports[end] !== undefined) continue
      throw bad(`${quote(word)} may end with a port; write [address]:port, or [address] without one`)
    }
  }
}

interface FoundHost {
  readonly host: string
  readonly port: string | undefined
  readonly mayEndWithPort: boolean
}

/** undefined: the word is no address. */
function hostIn(word: string, isFastLog: boolean): FoundHost | undefined {
  // tcpdump has a dot before the port.
  const [, four, port] = /^(\d{1,3}(?:\.\d{1,3}){3})(?:[.:](\d{1,5}))?$/.exec(word) ?? []
  if (four !== undefined) return { host: four, port, mayEndWithPort: false }
  const [, inBrackets, after] = /^\[([0-9A-Fa-f:.]{2,45})\](?::(\d{1,5}))?$/.exec(word) ?? []
  if (inBrackets !== undefined) return { host: inBrackets, port: after, mayEndWithPort: false }
  if (!/^[0-9A-Fa-f:.]{2,60}$/.test(word)) return undefined
  const parts = word.split(':')
  if (parts.length < 3) return undefined
  const last = parts.at(-1) ?? ''
  const [, group, dotted] = /^([0-9A-Fa-f]{0,4})\.(\d{1,5})$/.exec(last) ?? []
  if (group !== undefined)
    return { host: [...parts.slice(0, -1), group].join(':'), port: dotted, mayEndWithPort: false }
  const isWhole = parts.length === 9 && !word.includes('::')
  if (isPort(last) && (isWhole || (isFastLog && word.includes('::') && parts.length > 3)))
    return { host: parts.slice(0, -1).join(':'), port: last, mayEndWithPort: false }
  return { host: word, port: undefined, mayEndWithPort: word.includes('::') && /^\d{2,5}$/.test(last) }
}

function isPort(word: string): boolean {
  return /^\d{1,5}$/.test(word)
}

/** Of fast.log, without what is like "[Priority: 2]". */
function withoutLabels(line: string): string {
  const [last = '', ...parts] = line.split(']').toReversed()
  const bare = parts.toReversed().map((part) => {
    const from = part.lastIndexOf('[')
    return from >= 0 && LABELLED.test(part.slice(from + 1)) ? `${part.slice(0, from)} ` : `${part}]`
  })
  return bare.join('') + last
}

/** Of tcpdump, without what it says of the packet. */
function withoutFlags(line: string): string {
  const found = TCPDUMP.exec(line)
  if (found === null) return line
  const [, source, destination, said = ''] = found
  const protocol = said === '' ? '' : said === 'UDP' ? 'udp' : 'tcp'
  return `${line.slice(0, found.index)} ${source} ${destination} ${protocol}`
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
  const text =
    DATE_TIME.exec(line)?.[0] ?? EPOCH_WITH_FRACTION.exec(line)?.[1] ?? EPOCH.exec(line.trimStart())?.[1]
  if (text === undefined) return { atNs: undefined, rest: line }
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

function bad(problem: string): CapfleetError {
  return new CapfleetError('bad-parameter', problem)
}
