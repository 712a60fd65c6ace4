/**
 * FilterAddresses: a list of IPv4 and IPv6 addresses and networks. Its canonical text is sorted, without comments,
 * duplicates and what a network in the list already covers, separated by commas.
 */
import { badParameter, type ParameterType, quote } from '../query-parameters.ts'

export const ADDRESSES_MAX = 10_000
/** Room for comments. */
export const ADDRESS_LIST_CHARACTERS_MAX = 1_048_576

/** A network, or an address: then first and last are equal. */
interface Network {
  readonly bits: 32 | 128
  readonly first: bigint
  readonly last: bigint
  readonly prefix: number
}

export function addressListType(): ParameterType<string> {
  return {
    schema: { type: 'string', maxLength: ADDRESS_LIST_CHARACTERS_MAX },
    // An empty file of addresses must not mean all packets.
    readsEmpty: true,
    read: (text, name) => formatNetworks(parseList(text, name)),
    write: (list) => list,
  }
}

/**
 * A list of questions: each entry is one, also an address within a network of the list. Its canonical text is without
 * comments and repetitions, IPv4 first.
 */
export function addressQuestionsType(): ParameterType<string> {
  return {
    schema: { type: 'string', maxLength: ADDRESS_LIST_CHARACTERS_MAX },
    readsEmpty: true,
    read: (text, name) => parseEntries(text, name).map(formatNetwork).join(','),
    write: (list) => list,
  }
}

/** The entries of a canonical list of questions, and their ranges in the same order as packAddressList() packs them. */
export function packQuestions(list: string): {
  readonly texts: readonly string[]
  readonly ranges: Uint8Array
} {
  const networks = parseEntries(list, 'Address')
  return { texts: networks.map(formatNetwork), ranges: pack(networks) }
}

/** One address, in its canonical text. */
export interface Address {
  readonly text: string
  readonly bits: 32 | 128
}

/** Fails with bad-parameter, also for a network. */
export function readAddress(text: string, name: string): Address {
  if (text.includes('/')) throw badParameter(name, `must be a single address, got ${quote(text)}`)
  const { bits, first } = parseNetwork(text, name)
  return { text: formatAddress(first, bits), bits }
}

/** The number of entries of a list, canonical or not. */
export function addressCount(list: string): number {
  return entriesOf(list).length
}

/**
 * The ranges of a canonical list for the engine: 4 bytes little-endian with the number of IPv4 ranges, each of which
 * has its first and last address, big-endian; then those of IPv6.
 */
export function packAddressList(list: string): Uint8Array {
  return pack(parseList(list, 'FilterAddresses'))
}

function pack(networks: readonly Network[]): Uint8Array {
  const four = networks.filter(({ bits }) => bits === 32)
  const six = networks.filter(({ bits }) => bits === 128)
  const bytes = new Uint8Array(4 + four.length * 8 + six.length * 32)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, four.length, true)
  let at = 4
  for (const { first, last } of four) {
    view.setUint32(at, Number(first))
    view.setUint32(at + 4, Number(last))
    at += 8
  }
  for (const { first, last } of six) {
    for (const half of [first >> 64n, first, last >> 64n, last]) {
      view.setBigUint64(at, BigInt.asUintN(64, half))
      at += 8
    }
  }
  return bytes
}

const COMMENT = /#[^\r\n]*/g
const SEPARATOR = /[\s,;]+/

/** Each once: files of indicators repeat themselves. */
function entriesOf(text: string): readonly string[] {
  const entries = new Set(text.replaceAll(COMMENT, ' ').split(SEPARATOR))
  entries.delete('')
  return [...entries]
}

/** Sorted, without duplicates and networks within others. */
function parseList(text: string, name: string): readonly Network[] {
  return distinct(parseEntries(text, name))
}

/** Each network once, IPv4 first. */
function parseEntries(text: string, name: string): readonly Network[] {
  const entries = entriesOf(text)
  if (entries.length === 0) throw badParameter(name, 'has no address; add one, such as 10.1.2.3')
  if (entries.length > ADDRESSES_MAX)
    throw badParameter(
      name,
      `has ${entries.length} different entries, but at most ${ADDRESSES_MAX} are possible; use networks, or split the download`,
    )
  const networks = new Map<string, Network>()
  for (const entry of entries) {
    const network = parseNetwork(entry, name, () => lineOf(entry, text))
    networks.set(formatNetwork(network), network)
  }
  return [...networks.values()].toSorted((a, b) => a.bits - b.bits)
}

function distinct(networks: readonly Network[]): readonly Network[] {
  const sorted = networks.toSorted(
    (a, b) => a.bits - b.bits || compare(a.first, b.first) || compare(b.last, a.last),
  )
  const kept: Network[] = []
  for (const network of sorted) {
    const before = kept.at(-1)
    if (before === undefined || before.bits !== network.bits || network.first > before.last)
      kept.push(network)
  }
  return kept
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

const LINE_END = /\r\n?|\n/

/** Where the entry of a list of several lines is first, for messages. */
function lineOf(entry: string, text: string): string {
  const lines = text.trimEnd().split(LINE_END)
  return lines.length === 1 ? '' : `line ${lines.findIndex((line) => entriesOf(line).includes(entry)) + 1}: `
}

function parseNetwork(entry: string, name: string, place = () => ''): Network {
  const plain = parseIpv4(entry)
  // Most of a long list is like this.
  if (plain !== undefined) return { bits: 32, first: plain, last: plain, prefix: 32 }
  const [address = '', length, ...rest] = entry.split('/')
  const four = parseIpv4(address)
  const value = four ?? parseIpv6(address)
  const bits = four === undefined ? 128 : 32
  const isLength = length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits)
  if (value === undefined || !isLength || rest.length > 0)
    throw badParameter(
      name,
      `${place()}${quote(entry)} is no IPv4 or IPv6 address or network, such as 10.1.2.3, 10.1.0.0/16 or 2001:db8::/32${adviceFor(address, length)}`,
    )
  const prefix = length === undefined ? bits : Number(length)
  const hostBits = (1n << BigInt(bits - prefix)) - 1n
  if ((value & hostBits) !== 0n) {
    const network = formatAddress(value & ~hostBits, bits)
    throw badParameter(
      name,
      `${place()}${quote(entry)} has bits after its prefix: write ${network}/${prefix} for the network, or ${address} for the address`,
    )
  }
  const network = { bits, first: value, last: value | hostBits, prefix } as const
  return isMappedIpv4(network) ? unmapped(network) : network
}

const IPV4_MASK = 0xffff_ffffn
const MAPPED_PREFIX = 96

/** Whether it is of ::ffff:0:0/96: programs with IPv6 sockets print IPv4 addresses like that, but no packet has one. */
function isMappedIpv4({ bits, first, prefix }: Network): boolean {
  return bits === 128 && prefix >= MAPPED_PREFIX && first >> 32n === 0xffffn
}

function unmapped({ first, last, prefix }: Network): Network {
  return { bits: 32, first: first & IPV4_MASK, last: last & IPV4_MASK, prefix: prefix - MAPPED_PREFIX }
}

/** What to write instead of an address with a port or a mask, which other programs print. */
function adviceFor(address: string, length: string | undefined): string {
  const [host = '', port] = address.split(':')
  if (parseIpv4(host) !== undefined && port !== undefined) return '; write it without the port'
  const mask = length === undefined ? undefined : parseIpv4(length)
  if (mask === undefined) return ''
  const prefix = mask.toString(2).replaceAll('0', '').length
  const isMask = mask === 0xffff_ffffn - ((1n << BigInt(32 - prefix)) - 1n)
  return isMask ? `; write the mask as /${prefix}` : '; write a prefix length for the mask'
}

const LONGEST_IPV4 = '255.255.255.255'.length
const [ZERO, NINE, DOT, COLON, LETTER_A, LETTER_F] = [0x30, 0x39, 0x2e, 0x3a, 0x61, 0x66]

/** Character by character: lists are long, and no other request is served meanwhile. */
function parseIpv4(text: string): bigint | undefined {
  if (text.length > LONGEST_IPV4) return undefined
  let [value, part, digits, dots] = [0, 0, 0, 0]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === DOT) {
      if (digits === 0 || ++dots > 3) return undefined
      value = value * 256 + part
      part = digits = 0
    } else {
      const isLeadingZero = digits === 1 && part === 0
      if (code < ZERO || code > NINE || isLeadingZero) return undefined
      part = part * 10 + code - ZERO
      if (part > 255) return undefined
      digits += 1
    }
  }
  return dots === 3 && digits > 0 ? BigInt(value * 256 + part) : undefined
}

const IPV6_GROUPS = 8

/** Like parseIpv4(), character by character. */
function parseIpv6(text: string): bigint | undefined {
  const groups: number[] = []
  /** The number of groups before "::". */
  let gapAt: number | undefined
  let [group, digits] = [0, 0]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === DOT) {
      // The last group may be an IPv4 address, which counts as two.
      const four = parseIpv4(text.slice(at - digits))
      if (four === undefined || digits === 0) return undefined
      groups.push(Number(four >> 16n))
      group = Number(four & 0xffffn)
      break
    }
    if (code !== COLON) {
      const digit = hexDigit(code)
      if (digit === undefined || ++digits > 4) return undefined
      group = group * 16 + digit
      continue
    }
    const isGap = text.charCodeAt(at + 1) === COLON
    if (digits > 0) groups.push(group)
    else if (!isGap || at > 0) return undefined
    if (isGap && gapAt !== undefined) return undefined
    if (isGap) {
      gapAt = groups.length
      at++
    }
    group = digits = 0
  }
  if (digits > 0) groups.push(group)
  else if (gapAt !== groups.length) return undefined
  const missing = IPV6_GROUPS - groups.length
  if (gapAt === undefined ? missing !== 0 : missing < 1) return undefined
  if (gapAt !== undefined) groups.splice(gapAt, 0, ...Array.from({ length: missing }, () => 0))
  return BigInt(`0x${groups.map((one) => (0x1_0000 + one).toString(16).slice(1)).join('')}`)
}

function hexDigit(code: number): number | undefined {
  if (code >= ZERO && code <= NINE) return code - ZERO
  const lower = code | 0x20
  return lower >= LETTER_A && lower <= LETTER_F ? lower - LETTER_A + 10 : undefined
}

function formatNetworks(networks: readonly Network[]): string {
  return networks.map(formatNetwork).join(',')
}

function formatNetwork({ first, bits, prefix }: Network): string {
  const address = formatAddress(first, bits)
  return prefix === bits ? address : `${address}/${prefix}`
}

function formatAddress(value: bigint, bits: 32 | 128): string {
  if (bits === 32) {
    const number = Number(value)
    return `${number >>> 24}.${(number >>> 16) & 255}.${(number >>> 8) & 255}.${number & 255}`
  }
  const digits = value.toString(16).padStart(4 * IPV6_GROUPS, '0')
  return withoutZeros(Array.from({ length: IPV6_GROUPS }, (_, index) => groupOf(digits, 4 * index)))
}

/** Four digits without zeros before them. */
function groupOf(digits: string, from: number): string {
  let at = from
  while (at < from + 3 && digits.charCodeAt(at) === ZERO) at++
  return digits.slice(at, from + 4)
}

/** The longest run of zeros, of at least two groups, as "::". */
function withoutZeros(groups: readonly string[]): string {
  let [bestAt, bestLength] = [0, 1]
  for (let at = 0; at < groups.length; at++) {
    let length = 0
    while (groups[at + length] === '0') length += 1
    if (length > bestLength) [bestAt, bestLength] = [at, length]
  }
  if (bestLength === 1) return groups.join(':')
  return `${groups.slice(0, bestAt).join(':')}::${groups.slice(bestAt + bestLength).join(':')}`
}
