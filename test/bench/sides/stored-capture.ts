/** The single capture in the store of the first device, and a range of its time. */
import type { BenchParts } from '../rows/row.ts'

export const CAPTURE = 'bench'

export interface TimeRange {
  readonly beginNs: bigint
  readonly endNs: bigint
}

export async function storedCapture({ inputs, fleet }: BenchParts) {
  const { paths, traffic } = await inputs.single()
  const [path = ''] = paths
  await fleet.importFile(0, CAPTURE, path)
  const { firstNs, lastNs, bytes: inputBytes } = traffic
  return { device: await fleet.device(0), path, inputBytes, firstNs, lastNs }
}

/** One percent of the time, before which a tool that scans has read nine tenths. */
export function onePercentAtNinety({
  firstNs,
  lastNs,
}: {
  readonly firstNs: bigint
  readonly lastNs: bigint
}) {
  const spanNs = lastNs - firstNs
  const range = { beginNs: firstNs + (spanNs * 90n) / 100n, endNs: firstNs + (spanNs * 91n) / 100n }
  return { ...range, target: rangeTarget(range) }
}

export function rangeTarget({ beginNs, endNs }: TimeRange): string {
  return `/api/v1/pcap/timerange?TSBegin=${beginNs}&TSEnd=${endNs}&TSUnit=nanos`
}

/** editcap, which keeps the packets of the range. */
export function rangeWords(path: string, { beginNs, endNs }: TimeRange, output: string) {
  const range = ['-A', secondsText(beginNs), '-B', secondsText(endNs)]
  return ['editcap', '-F', 'nsecpcap', ...range, path, output] as const
}

function secondsText(ns: bigint): string {
  return `${ns / 1_000_000_000n}.${String(ns % 1_000_000_000n).padStart(9, '0')}`
}
