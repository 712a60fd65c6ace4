/** The marks of the time axis, at round local times of the zone. */
import { clockText, instantText, NS_PER_S, offsetText, type Zone, zoneOffsetNs } from '../base/instants.ts'
import type { TimeView } from './time-view.ts'

export interface Tick {
  readonly ns: bigint
  readonly label: string
  /** The first of a day, or of a minute if labels are fractions of one. */
  readonly isMajor: boolean
}

/** What the labels omit: valid from its instant until the next one's. */
export interface TickDate {
  readonly ns: bigint
  readonly text: string
  readonly zone: string
}

export interface TimeAxis {
  readonly ticks: readonly Tick[]
  /** For the left edge, each day or minute that begins, and the first mark after a clock change. */
  readonly dates: readonly TickDate[]
}

const MINUTE_NS = 60n * NS_PER_S
const DAY_NS = 86_400n * NS_PER_S
const STEPS_NS: readonly bigint[] = [
  ...Array.from({ length: 9 }, (_, power) =>
    [1n, 2n, 5n].map((digit) => digit * 10n ** BigInt(power)),
  ).flat(),
  ...[1n, 2n, 5n, 10n, 15n, 30n, 60n, 120n, 300n, 600n, 900n, 1_800n].map((seconds) => seconds * NS_PER_S),
  ...[1n, 2n, 3n, 6n, 12n, 24n, 48n, 168n, 336n, 720n, 2_160n, 8_760n, 43_800n].map(
    (hours) => hours * 3_600n * NS_PER_S,
  ),
]

/** About `count` marks. */
export function timeAxis(view: TimeView, zone: Zone, count: number): TimeAxis {
  const wanted = (view.toNs - view.fromNs) / BigInt(Math.max(1, Math.floor(count)))
  const stepNs = STEPS_NS.find((candidate) => candidate >= wanted) ?? DAY_NS * 3_650n
  const majorNs = stepNs < NS_PER_S ? MINUTE_NS : DAY_NS
  const ticks: Tick[] = []
  for (
    let ns = nextTick(view.fromNs, stepNs, zone);
    ns <= view.toNs && ticks.length < 200;
    ns = nextTick(ns, stepNs, zone)
  ) {
    const isMajor = (ns + zoneOffsetNs(zone, ns)) % majorNs === 0n
    ticks.push({ ns, isMajor, label: labelOf(ns, stepNs, zone) })
  }
  // Days need no date next to them, and their offsets may differ.
  if (stepNs >= DAY_NS) return { ticks, dates: [{ ns: view.fromNs, text: '', zone }] }
  const dateOf = (ns: bigint): TickDate => ({
    ns,
    text: instantText(ns, zone, 0).slice(0, stepNs < NS_PER_S ? 16 : 10),
    zone: offsetText(zone, ns),
  })
  const dates = [dateOf(view.fromNs)]
  for (const { ns, isMajor } of ticks) {
    const date = dateOf(ns)
    if (isMajor || date.zone !== dates.at(-1)?.zone) dates.push(date)
  }
  return { ticks, dates }
}

/** The first round time after an instant. */
function nextTick(ns: bigint, stepNs: bigint, zone: Zone): bigint {
  const offset = zoneOffsetNs(zone, ns)
  const local = ((ns + offset) / stepNs + 1n) * stepNs
  const next = local - offset
  const nextOffset = zoneOffsetNs(zone, next)
  if (nextOffset === offset || (next + nextOffset) % stepNs === 0n) return next
  // The clocks change in between: the round time comes earlier or later, or is skipped.
  const shifted = local - nextOffset
  return zoneOffsetNs(zone, shifted) === nextOffset ? shifted : nextTick(next, stepNs, zone)
}

function labelOf(ns: bigint, stepNs: bigint, zone: Zone): string {
  if (stepNs >= DAY_NS) return instantText(ns, zone, 0).slice(0, 10)
  const clock = clockText(ns, zone, digitsOf(stepNs))
  if (stepNs >= MINUTE_NS) return clock.slice(0, 5)
  return stepNs >= NS_PER_S ? clock : clock.slice(6)
}

/** The number of fractional digits needed to tell two neighbours apart. */
export function digitsOf(stepNs: bigint): number {
  if (stepNs >= NS_PER_S) return 0
  return Math.min(9, Math.max(1, 10 - String(stepNs).length))
}
