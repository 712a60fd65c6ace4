/**
 * The expected content of a download, implemented as simply as possible: every packet in memory, one step after the
 * other, no index, no threads. It shares nothing with the engine.
 */
import { makePcap } from '../packets/packet-maker.ts'
import type { VendorPacket } from '../packets/vendor-packets.ts'
import { a7150Times } from './reference-a7150-clock.ts'
import { erspanTimes } from './reference-erspan-clock.ts'

/** A packet in the store. */
export interface StoredPacket extends VendorPacket {
  readonly port: number
}

export interface ReferenceCondition {
  readonly field: 'capture.port' | 'a7130.device' | 'a7130.srcdevice' | 'a7130.srcport' | 'c3550.srcport'
  readonly op: '==' | '!='
  readonly values: readonly number[]
}

export interface ReferenceQuery {
  readonly beginNs: bigint
  readonly endNs: bigint
  readonly conditions: readonly ReferenceCondition[]
  /** Keeps packets to this UDP port; `isDecap`: including those after a tag. */
  readonly udpPort: number | undefined
  readonly isDecap: boolean
  readonly pattern: RegExp | undefined
  readonly mode: 'nic' | keyof VendorPacket['times']
  readonly tsMaxNs: bigint | undefined
  readonly sliceBytes: number | undefined
  readonly maxPackets: number | undefined
  readonly maxBytes: number | undefined
  readonly isMicroseconds: boolean
}

export interface ReferenceResult {
  readonly pcap: Buffer
  /** Packets that kept the time of the capture hardware, before any limit. */
  readonly fallbacks: number
  /** Packets that come after one with a later time, before any limit. */
  readonly late: number
  /** Timestamp of the first packet that a limit excluded. */
  readonly nextNs: bigint | undefined
}

/** The packets of a stream, whole and in stored order, with the times derived from earlier packets. */
export function withClockTimes(stream: readonly StoredPacket[]): StoredPacket[] {
  const overwrite = a7150Times(stream, 'overwrite')
  const insert = a7150Times(stream, 'insert')
  const erspan = erspanTimes(stream)
  return stream.map((packet, index) => ({
    ...packet,
    times: {
      ...packet.times,
      ...onlyPossible('vendorA7150_overwrite', overwrite[index]),
      ...onlyPossible('vendorA7150_insert', insert[index]),
      ...onlyPossible('vendorB_erspan3', erspan[index]),
    },
  }))
}

/** PCAP has 32 bits for seconds since 1970. */
function onlyPossible(mode: keyof VendorPacket['times'], ns: bigint | undefined): VendorPacket['times'] {
  return ns === undefined || ns < 0n || ns >= PCAP_END_NS ? {} : { [mode]: ns }
}

const PCAP_END_NS = 2n ** 32n * 1_000_000_000n

/** `streams` in the order that decides between equal times; packets of each in stored order. */
export function referenceDownload(
  streams: readonly (readonly StoredPacket[])[],
  query: ReferenceQuery,
  snaplen: number,
): ReferenceResult {
  const passed = streams
    .flat()
    .filter(({ ns }) => ns >= query.beginNs && ns < query.endNs)
    .toSorted((a, b) => compare(a.ns, b.ns))
    .filter((packet) => passesFilters(packet, query))
  const timed = sortInWindow(
    passed.map((packet) => ({ packet, ns: timeOf(packet, query.mode) ?? packet.ns })),
  )
  const firstNs = timed[0]?.ns ?? 0n
  const { tsMaxNs } = query
  const end = timed.findIndex(({ ns }) => tsMaxNs !== undefined && ns >= firstNs + tsMaxNs)
  const shown = timed.slice(0, end === -1 ? timed.length : end).map(({ packet, ns }) => ({
    ns,
    originalLength: packet.originalLength,
    captured: packet.captured.subarray(0, query.sliceBytes),
  }))
  const count = allowed(shown, query)
  const options = { nanoseconds: !query.isMicroseconds, snaplen: query.sliceBytes ?? snaplen }
  return {
    pcap: makePcap(shown.slice(0, count), options),
    fallbacks: timed.filter(({ packet }) => timeOf(packet, query.mode) === undefined).length,
    late: countLate(timed),
    nextNs: shown[count]?.ns,
  }
}

interface TimedPacket {
  readonly packet: StoredPacket
  readonly ns: bigint
}

/** The sort window in NIC time; packets further apart are not sorted. */
const WINDOW_NS = 10_000_000n

/** `timed` in NIC time order; packets with equal times keep their order. */
function sortInWindow(timed: readonly TimedPacket[]): TimedPacket[] {
  const sorted: TimedPacket[] = []
  let inside: TimedPacket[] = []
  const takeOut = (): void => {
    const next = inside.reduce((best, candidate) => (candidate.ns < best.ns ? candidate : best))
    sorted.push(next)
    inside = inside.filter((other) => other !== next)
  }
  for (const added of timed) {
    // The first one in the window is the oldest.
    while (inside[0] !== undefined && added.packet.ns - inside[0].packet.ns > WINDOW_NS) takeOut()
    inside.push(added)
  }
  while (inside.length > 0) takeOut()
  return sorted
}

function countLate(timed: readonly TimedPacket[]): number {
  let latestNs = 0n
  let late = 0
  for (const { ns } of timed) {
    if (ns < latestNs) late++
    else latestNs = ns
  }
  return late
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function timeOf(packet: StoredPacket, mode: ReferenceQuery['mode']): bigint | undefined {
  return mode === 'nic' ? packet.ns : packet.times[mode]
}

function passesFilters(packet: StoredPacket, query: ReferenceQuery): boolean {
  if (!query.conditions.every((condition) => meets(packet, condition))) return false
  const { udpPort, isDecap, pattern } = query
  const isSeen = !packet.isTagged || isDecap
  if (udpPort !== undefined && !(isSeen && packet.udpPort === udpPort)) return false
  return pattern === undefined || pattern.test(packet.captured.toString('latin1'))
}

function meets(packet: StoredPacket, { field, op, values }: ReferenceCondition): boolean {
  const value = fieldOf(packet, field)
  const isListed = value !== undefined && values.includes(value)
  return op === '==' ? isListed : !isListed
}

function fieldOf(packet: StoredPacket, field: ReferenceCondition['field']): number | undefined {
  switch (field) {
    case 'capture.port':
      return packet.port
    case 'a7130.srcport':
      return packet.a7130?.port ?? 0
    case 'c3550.srcport':
      return packet.c3550Port
    default:
      return packet.a7130?.device ?? 0
  }
}

/** How many of them fit MaxPackets and MaxBytes. */
function allowed(records: readonly { readonly captured: Buffer }[], query: ReferenceQuery): number {
  let bytes = 24
  let count = 0
  for (const { captured } of records) {
    bytes += 16 + captured.length
    if (count === query.maxPackets || bytes > (query.maxBytes ?? Number.POSITIVE_INFINITY)) break
    count++
  }
  return count
}
