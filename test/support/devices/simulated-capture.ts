/**
 * The content of simulated devices, computed from the device's number alone, so that two processes agree on every
 * byte: one packet every 10 ms, 1 ms later on each device, and sometimes two with the same time.
 */
import { createHash } from 'node:crypto'
import { makePacket, makePcap, makeRecord } from '../packets/packet-maker.ts'
import type { PcapRecord } from '../packets/pcap-records.ts'

export const SIMULATED_BEGIN_NS = 1_700_000_000_000_000_000n
const STEP_NS = 10_000_000n
const SKEW_NS = 1_000_000n
/** Every n-th packet has the time of the packet before it. */
const TWIN_EVERY = 7

export interface SimulatedCapture {
  readonly header: Buffer
  readonly records: readonly { readonly ns: bigint; readonly bytes: Buffer }[]
}

export function simulatedCapture(index: number, packets: number): SimulatedCapture {
  const records = Array.from({ length: packets }, (_, number) => simulatedPacket(index, number))
  return {
    header: makePcap([]),
    records: records.map((record) => ({ ns: record.ns, bytes: makeRecord(record) })),
  }
}

function simulatedPacket(index: number, number: number): PcapRecord {
  const at = number % TWIN_EVERY === 1 ? number - 1 : number
  const ns = SIMULATED_BEGIN_NS + BigInt(at) * STEP_NS + BigInt(index) * SKEW_NS
  return makePacket(ns, `device ${index} packet ${number}`, 60 + ((number * 131 + index * 17) % 1_300))
}

/** Query string of the first `packets` packets of every device. */
export function simulatedRange(packets: number): string {
  const endNs = SIMULATED_BEGIN_NS + BigInt(packets) * STEP_NS
  return `TSBegin=${SIMULATED_BEGIN_NS}&TSEnd=${endNs}&TSUnit=nanos`
}

/** The bytes of a merge of these devices (numbers in the fleet's order). */
export function simulatedMerge(indices: readonly number[], packets: number): Buffer {
  // The next packet may have the same time as the last one, and is then in the range too.
  const captures = indices.map((index) => simulatedCapture(index, packets + 1))
  const endNs = SIMULATED_BEGIN_NS + BigInt(packets) * STEP_NS
  const records = captures.flatMap(({ records }) => records.filter(({ ns }) => ns < endNs))
  // The sort is stable, so that records of equal time stay in the order of devices, then of arrival.
  records.sort((a, b) => (a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : 0))
  return Buffer.concat([makePcap([]), ...records.map(({ bytes }) => bytes)])
}

const digests = new Map<string, string>()

/** SHA-256 of simulatedMerge, cached. */
export function simulatedDigest(indices: readonly number[], packets: number): string {
  const key = `${indices.join()}/${packets}`
  const digest = digests.get(key) ?? sha256(simulatedMerge(indices, packets))
  digests.set(key, digest)
  return digest
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
