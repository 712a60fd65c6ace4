/** The Community ID of a conversation (version 1, seed 0): the same in Zeek, Suricata, Arkime and others. */
import type { PacketFlow } from './packet-summary.ts'

/** Undefined if the flow has no ports: the number of an ICMP message takes more than its header. */
export function communityId({ source, destination, protocol, ports }: PacketFlow): string | undefined {
  if (ports === undefined) return undefined
  const ends = [
    [...addressBytes(source), ...twoBytes(ports.source)],
    [...addressBytes(destination), ...twoBytes(ports.destination)],
  ] as const
  const [first, second] = isAfter(ends[0], ends[1]) ? [ends[1], ends[0]] : ends
  const portBytes = 2
  const hashed = [
    ...twoBytes(0),
    ...first.slice(0, -portBytes),
    ...second.slice(0, -portBytes),
    protocol,
    0,
    ...first.slice(-portBytes),
    ...second.slice(-portBytes),
  ]
  return `1:${btoa(String.fromCharCode(...sha1(hashed)))}`
}

function isAfter(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((byte, index) => byte !== b[index])
  return at !== -1 && (a[at] ?? 0) > (b[at] ?? 0)
}

function twoBytes(value: number): readonly number[] {
  return [value >> 8, value & 0xff]
}

/** An address as packet-summary.ts writes it. */
function addressBytes(text: string): readonly number[] {
  if (!text.includes(':')) return text.split('.').map(Number)
  const [before = '', after] = text.split('::')
  const words = (part: string) =>
    part === '' ? [] : part.split(':').map((word) => Number.parseInt(word, 16))
  const [head, tail] = [words(before), words(after ?? '')]
  const zeros = Array<number>(8 - head.length - tail.length).fill(0)
  return [...head, ...zeros, ...tail].flatMap(twoBytes)
}

const WORDS_PER_BLOCK = 16
const ROUNDS = 80
const CONSTANTS = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6]

/** Browsers have it only for pages over https, and it is not for security here. */
function sha1(bytes: readonly number[]): readonly number[] {
  const bits = bytes.length * 8
  const words = Array<number>((((bytes.length + 8) >> 6) + 1) * WORDS_PER_BLOCK).fill(0)
  for (const [index, byte] of [...bytes, 0x80].entries())
    words[index >> 2] = (words[index >> 2] ?? 0) | (byte << (24 - (index % 4) * 8))
  words[words.length - 1] = bits
  let state = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0]
  for (let block = 0; block < words.length; block += WORDS_PER_BLOCK)
    state = withBlock(state, words.slice(block, block + WORDS_PER_BLOCK))
  return state.flatMap((word) => [24, 16, 8, 0].map((shift) => (word >>> shift) & 0xff))
}

function withBlock(state: readonly number[], block: readonly number[]): number[] {
  const w = [...block]
  for (let at = WORDS_PER_BLOCK; at < ROUNDS; at += 1)
    w.push(rotated((w[at - 3] ?? 0) ^ (w[at - 8] ?? 0) ^ (w[at - 14] ?? 0) ^ (w[at - 16] ?? 0), 1))
  let [a = 0, b = 0, c = 0, d = 0, e = 0] = state
  for (let at = 0; at < ROUNDS; at += 1) {
    const quarter = Math.floor(at / 20)
    const mixed = quarter === 0 ? (b & c) | (~b & d) : quarter === 2 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d
    const next = (rotated(a, 5) + mixed + e + (CONSTANTS[quarter] ?? 0) + (w[at] ?? 0)) | 0
    ;[e, d, c, b, a] = [d, c, rotated(b, 30), a, next]
  }
  return [a, b, c, d, e].map((word, index) => (word + (state[index] ?? 0)) | 0)
}

function rotated(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by))
}
