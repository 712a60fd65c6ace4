/**
 * Realistic traffic of three sites over the same minutes, for the demo, the benchmarks and tests: the same seed gives
 * the same bytes on every machine.
 */
import { playFlows } from './flow-player.ts'
import { type Flow, flowSchedule } from './flow-schedule.ts'
import { LeasedLineFlows } from './leased-line-flows.ts'
import { LocalFlows } from './local-flows.ts'
import { PcapFile } from './pcap-file.ts'
import { Random } from './random.ts'
import type { SiteNumber } from './site-network.ts'

export interface SiteTrafficOptions {
  readonly site: SiteNumber
  /** An integer. The sites of one demo share seed, startNs, durationS and packets. */
  readonly seed: number
  readonly startNs: bigint
  /** Default: 300. Flows still in progress at the end are finished. */
  readonly durationS?: number
  /** Minimum number. Default: 120,000. */
  readonly packets?: number
  /** Further flows, in order of their beginning; they do not change the others. Default: none. */
  readonly planted?: readonly Flow[]
  readonly signal?: AbortSignal | undefined
}

export interface SiteTraffic {
  readonly packets: number
  readonly firstNs: bigint
  readonly lastNs: bigint
}

/** The fraction of a site's packets that goes to each of the other two sites. */
const LEASED_LINE_SHARE = 0.06
const PAIRS: readonly (readonly [SiteNumber, SiteNumber])[] = [
  [0, 1],
  [0, 2],
  [1, 2],
]

/**
 * Writes one site's traffic to a nanosecond PCAP file, in time order, in bounded memory. Flows between two sites are
 * in the files of both, a few milliseconds apart.
 */
export async function writeSiteTraffic(path: string, options: SiteTrafficOptions): Promise<SiteTraffic> {
  await using file = await PcapFile.create(path)
  let packets = 0
  let firstNs = options.startNs
  let lastNs = options.startNs
  for (const { timestampNs, bytes } of playFlows(siteFlows(options))) {
    if (!file.hasRoom(bytes.byteLength)) {
      await file.flush()
      options.signal?.throwIfAborted()
    }
    file.append(timestampNs, bytes)
    if (packets === 0) firstNs = timestampNs
    lastNs = timestampNs
    packets++
  }
  await file.flush()
  return { packets, firstNs, lastNs }
}

/** All flows that the site sees, in order of their beginning. */
function siteFlows(options: SiteTrafficOptions): Generator<Flow, void> {
  const { site, seed, startNs, durationS = 300, packets = 120_000, planted = [] } = options
  const common = { startNs, durationNs: BigInt(Math.round(durationS * 1e9)) }
  const local = new LocalFlows(site, new Random(seed, `site ${site}`))
  const lines = PAIRS.filter((pair) => pair.includes(site)).map((pair) => {
    const flows = new LeasedLineFlows(pair, site, new Random(seed, `line ${pair.join('-')}`))
    const share = Math.ceil(packets * LEASED_LINE_SHARE)
    return flowSchedule({ ...common, packets: share, makeFlow: () => flows.makeFlow() })
  })
  const localShare = Math.ceil(packets * (1 - 2 * LEASED_LINE_SHARE))
  const makeFlow = (flowStartNs: bigint) => local.makeFlow(flowStartNs)
  return inOrder([flowSchedule({ ...common, packets: localShare, makeFlow }), ...lines, planted.values()])
}

/** Merges a few schedules; equal start times in the order of the list. */
function* inOrder(schedules: readonly Iterator<Flow, unknown>[]): Generator<Flow, void> {
  const heads = schedules.map((schedule) => ({ schedule, next: schedule.next() }))
  for (;;) {
    let earliest: { flow: Flow; head: (typeof heads)[number] } | undefined
    for (const head of heads) {
      if (head.next.done === true) continue
      const flow = head.next.value
      if (earliest === undefined || flow.startNs < earliest.flow.startNs) earliest = { flow, head }
    }
    if (earliest === undefined) return
    yield earliest.flow
    earliest.head.next = earliest.head.schedule.next()
  }
}
