import { recordEnd } from './record-window.ts'

const SECOND_NS = 1_000_000_000n
const LAST_SECOND = 0xffff_ffffn

/**
 * Subtracts `offsetNs` from the timestamps of the whole records at the beginning of `bytes`, in
 * place. What a PCAP cannot carry becomes the first or last instant that it can.
 */
export function alignRecords(bytes: Buffer, offsetNs: bigint, nanoseconds: boolean): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const unitNs = nanoseconds ? 1n : 1_000n
  for (let at = 0, end = recordEnd(view, 0); end !== 0; at = end, end = recordEnd(view, at)) {
    const ns = BigInt(view.getUint32(at, true)) * SECOND_NS + BigInt(view.getUint32(at + 4, true)) * unitNs
    const alignedNs = limited(ns - offsetNs)
    view.setUint32(at, Number(alignedNs / SECOND_NS), true)
    view.setUint32(at + 4, Number((alignedNs % SECOND_NS) / unitNs), true)
  }
}

function limited(ns: bigint): bigint {
  if (ns < 0n) return 0n
  const last = LAST_SECOND * SECOND_NS + SECOND_NS - 1n
  return ns > last ? last : ns
}
