/** Addresses, ports and protocol of an alert, and the tcpdump expression that finds exactly their packets. */
import { type Address, readAddress } from '../filter/address-list.ts'
import { badParameter, quote } from '../query-parameters.ts'
import { ipProtocolNumber } from './ip-protocols.ts'

/** One side of a conversation; undefined: any. */
export interface FlowEnd {
  readonly host: string | undefined
  readonly port: number | undefined
}

/** A conversation, of which at least one host is known. */
export interface Flow {
  readonly bits: 32 | 128
  readonly source: FlowEnd
  readonly destination: FlowEnd
  /** Number of the IP protocol; undefined: any. */
  readonly protocol: number | undefined
}

/** A text of an alert or a link, with the name that errors show. Empty counts as missing. */
export interface NamedText {
  readonly name: string
  readonly text: string | undefined
}

export interface FlowTexts {
  readonly source: NamedText
  readonly destination: NamedText
  /** A name or a number. */
  readonly protocol: NamedText
  readonly sourcePort: NamedText
  readonly destinationPort: NamedText
}

const ICMP = 1
const ICMP6 = 58
/** TCP, UDP and SCTP: the protocols whose ports tcpdump finds. */
const WORDS_WITH_PORTS: ReadonlyMap<number, string> = new Map([
  [6, 'tcp'],
  [17, 'udp'],
  [132, 'sctp'],
])

/** Fails with bad-parameter that names the text. */
export function readFlow({ source, destination, protocol, sourcePort, destinationPort }: FlowTexts): Flow {
  const from = readHost(source)
  const to = readHost(destination)
  const known = from ?? to
  if (known === undefined)
    throw badParameter(source.name, `and ${destination.name} are missing; give at least one address`)
  if (from !== undefined && to !== undefined && from.bits !== to.bits)
    throw badParameter(
      destination.name,
      `${quote(to.text)} and ${source.name} ${quote(from.text)} must both be IPv4 or both be IPv6`,
    )
  const number = readProtocol(protocol, known.bits)
  const hasPorts = number === undefined || WORDS_WITH_PORTS.has(number)
  // What Zeek writes as ports of ICMP are the type and the code of a message, and other protocols have none.
  const portOf = (port: NamedText) => (hasPorts ? readPort(port) : undefined)
  return {
    bits: known.bits,
    source: { host: from?.text, port: portOf(sourcePort) },
    destination: { host: to?.text, port: portOf(destinationPort) },
    protocol: number,
  }
}

function readHost({ name, text = '' }: NamedText): Address | undefined {
  return text.trim() === '' ? undefined : readAddress(text.trim(), name)
}

function readProtocol({ name, text = '' }: NamedText, bits: 32 | 128): number | undefined {
  const given = text.trim()
  if (given === '') return undefined
  const number = ipProtocolNumber(given)
  if (number === undefined)
    throw badParameter(
      name,
      `${quote(given)} is not a known protocol; give a name such as tcp, udp or icmp, or a number from 0 to 255`,
    )
  // Zeek has one name for both.
  return given.toLowerCase() === 'icmp' && bits === 128 ? ICMP6 : number
}

function readPort({ name, text = '' }: NamedText): number | undefined {
  const given = text.trim()
  if (given === '') return undefined
  if (/^\d{1,5}$/.test(given) && Number(given) <= 65_535) return Number(given)
  throw badParameter(name, `must be a port from 0 to 65535, got ${quote(given)}`)
}

/**
 * The packets of both directions, untagged and after one or two VLAN tags. `isInnermost` is for FilterBPFDecap, which
 * looks past tags: the same packets without their tags.
 */
export function flowFilter(flow: Flow, { isInnermost }: { readonly isInnermost: boolean }): string {
  const plain = plainFilter(flow)
  return isInnermost ? plain : behindTags(plain)
}

/** What a filter finds untagged, and after one or two VLAN tags. */
export function behindTags(plain: string): string {
  // After vlan, everything that follows looks behind the tag.
  return `(${plain}) or (vlan and ((${plain}) or (vlan and (${plain}))))`
}

function plainFilter({ bits, source, destination, protocol }: Flow): string {
  const directions = new Set([directionFilter(source, destination), directionFilter(destination, source)])
  const either = [...directions].map((direction) => (directions.size > 1 ? `(${direction})` : direction))
  return `${protocolWord(bits, protocol)} and ${directions.size > 1 ? `(${either.join(' or ')})` : either.join('')}`
}

function protocolWord(bits: 32 | 128, protocol: number | undefined): string {
  const family = bits === 32 ? 'ip' : 'ip6'
  if (protocol === undefined) return family
  if (bits === 32 && protocol === ICMP) return 'icmp'
  if (bits === 128 && protocol === ICMP6) return 'icmp6'
  return WORDS_WITH_PORTS.get(protocol) ?? `${family} proto ${protocol}`
}

function directionFilter(from: FlowEnd, to: FlowEnd): string {
  return [
    ...(from.host === undefined ? [] : [`src host ${from.host}`]),
    ...(from.port === undefined ? [] : [`src port ${from.port}`]),
    ...(to.host === undefined ? [] : [`dst host ${to.host}`]),
    ...(to.port === undefined ? [] : [`dst port ${to.port}`]),
  ].join(' and ')
}

/** Equal for the two directions of a conversation. */
export function flowKey({ source, destination, protocol }: Flow): string {
  const ends = [source, destination].map(({ host = '', port = '' }) => `${host} ${port}`).toSorted()
  return `${protocol ?? ''} ${ends.join(' ')}`
}
