/** The captures of the stand's devices, known packet by packet. */
import { makeReferenceCapture } from '../support/reference/reference-captures.ts'
import type { StoredPacket } from '../support/reference/reference-download.ts'
import { seededRandom } from '../support/seeded-random.ts'

export const DEVICES = ['east', 'west', 'ring'] as const
export type DeviceName = (typeof DEVICES)[number]

/** 2026-09-21 14:13:20 UTC, 23:13:20 in Tokyo, 10:13:20 in New York. */
export const START_NS = 1_790_000_000_000_000_000n
export const SECOND_NS = 1_000_000_000n
export const EAST_ZONE = 'Asia/Tokyo'
export const GATEWAY_ZONE = 'America/New_York'

export const CAPTURE_NAMES = ['alpha', 'beta', 'gamma'] as const
export type CaptureName = (typeof CAPTURE_NAMES)[number]

export interface ContractCapture {
  readonly device: DeviceName
  readonly fullName: string
  /** The packets of each port, in stored order. */
  readonly streams: readonly StoredPacket[][]
}

/** From zero to several packets per millisecond; bursts and pauses. */
const GAPS_NS = [0, 0, 1_000, 3_000_000, 30_000_000]

// Rows state facts about these packets, so they must be the same each time.
const random = seededRandom(Number(process.env.SEED ?? 16))

function capture(
  device: DeviceName,
  name: CaptureName,
  plan: { ports: number; packets: number; startNs: bigint },
) {
  const streams = makeReferenceCapture(random, { name, gapsNs: GAPS_NS, longGapShare: 0, ...plan })
  return { device, fullName: `${name}_20260921_1413`, streams }
}

/** Beta follows alpha on the same device; gamma is within alpha's time on another device. */
export const CAPTURES: Readonly<Record<CaptureName, ContractCapture>> = {
  alpha: capture('east', 'alpha', { ports: 3, packets: 900, startNs: START_NS }),
  beta: capture('east', 'beta', { ports: 2, packets: 150, startNs: START_NS + 60n * SECOND_NS }),
  gamma: capture('west', 'gamma', { ports: 2, packets: 300, startNs: START_NS + SECOND_NS + 1n }),
}

export const ALPHA = CAPTURES.alpha.fullName
export const BETA = CAPTURES.beta.fullName
export const GAMMA = CAPTURES.gamma.fullName
/** A capture on east and on west. */
export const TWIN = 'twin_20260921_1500'
/** Ethernet and bare IP at the same time, on east. */
export const MIXED = [
  ['wire_20260919_1413', 1],
  ['bare_20260919_1413', 101],
] as const
export const MIXED_NS = START_NS - 2n * 86_400n * SECOND_NS
/** Larger than all buffers on the way, so that a client that does not read holds its download open. On east. */
export const BIG = 'big_20261118_2307'

export function packetsOf(name: CaptureName): StoredPacket[] {
  return CAPTURES[name].streams.flat().toSorted((a, b) => (a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : 0))
}

/** Of the ring device: retention has removed the first capture, and 27 packets of the second. */
export const RING = {
  gone: 'gone_20231114_2213',
  trimmed: 'trimmed_20231114_2213',
  young: 'young_20231114_2213',
  startNs: 1_700_000_000_000_000_000n,
  stepNs: 1_000_000n,
  packetBytes: 10_000,
  segmentBytes: 100_000,
} as const

export function ringNs(packet: number): bigint {
  return RING.startNs + BigInt(packet) * RING.stepNs
}
