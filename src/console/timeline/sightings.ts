/** Where in the fleet, and when, addresses were seen: the gateway's answer, line by line, and its marks in the lanes. */
import type { z } from 'zod'
import type { FLEET_SEEN_LINES } from '../../shared/contract/seen-answers.ts'
import { openAnswer, Problem } from '../base/ask-gateway.ts'
import { linesOf } from '../base/body-lines.ts'
import { TEXTS } from '../texts.ts'
import { placeOf, type TimeView } from './time-view.ts'

/** A time in which a device may have packets of an address, or has counted them. */
export interface Sighting extends TimeView {
  readonly device: string
  readonly address: string
  /** undefined: they were not counted. */
  readonly packets: string | undefined
}

export type SearchEnd = z.infer<typeof FLEET_SEEN_LINES.end>

export interface FoundSightings {
  /** In the order of the answer; the newest SIGHTINGS_MAX of a search at most. */
  readonly sightings: readonly Sighting[]
  /** Whether others are left out. */
  readonly isCut: boolean
  /** Why devices did not answer, by name. */
  readonly failures: ReadonlyMap<string, string>
  /** undefined: the search is not finished. */
  readonly end: SearchEnd | undefined
}

export const NO_SIGHTINGS: FoundSightings = {
  sightings: [],
  isCut: false,
  failures: new Map(),
  end: undefined,
}

/** More would not be read, and would slow down the lanes. */
const SIGHTINGS_MAX = 1_000

export interface SightingsQuestion extends TimeView {
  /** As typed: addresses and networks. */
  readonly addresses: string
  /** Callers with a filter are told only what was counted. */
  readonly isFiltered: boolean
}

/** `show` is called as the answer arrives. Fails with a Problem, also if the answer breaks off. */
export async function askSightings(
  question: SightingsQuestion,
  signal: AbortSignal,
  show: (found: FoundSightings) => void,
): Promise<void> {
  let found = NO_SIGHTINGS
  for await (const line of askSeenLines(question, signal)) {
    found = withLine(found, line)
    show(found)
  }
}

type SeenLine = z.infer<(typeof FLEET_SEEN_LINES)['address' | 'progress' | 'failure' | 'end']>

/** The lines up to the last one, which has "end". Fails with a Problem, also if the answer breaks off. */
export async function* askSeenLines(
  { addresses, fromNs, toNs, isFiltered }: SightingsQuestion,
  signal: AbortSignal,
): AsyncGenerator<SeenLine, void> {
  const query = new URLSearchParams({
    Address: addresses,
    TSBegin: String(fromNs),
    TSEnd: String(toNs),
    TSUnit: 'nanos',
    ...(isFiltered ? { Verify: '1' } : {}),
  })
  const { body } = await openAnswer(`v1/seen?${query}`, { signal })
  if (body === null) throw brokenOff()
  let isEnded = false
  for await (const text of linesOf(body)) {
    const line = JSON.parse(text) as SeenLine | z.infer<typeof FLEET_SEEN_LINES.error>
    if ('error' in line && !('device' in line)) throw new Problem({ ...line.error, status: 0 })
    isEnded ||= 'end' in line
    yield line
  }
  if (!isEnded) throw brokenOff()
}

/** What is found after this line. */
export function withLine(found: FoundSightings, line: SeenLine): FoundSightings {
  if ('end' in line) return { ...found, end: line }
  if ('error' in line)
    return { ...found, failures: new Map([...found.failures, [line.device, line.error.detail]]) }
  if (!('address' in line)) return found
  const all = [...found.sightings, ...sightingsOf(line)]
  return { ...found, sightings: all.slice(0, SIGHTINGS_MAX), isCut: all.length > SIGHTINGS_MAX }
}

function sightingsOf({
  device,
  address,
  spans,
  packets,
  firstNs,
  lastNs,
}: z.infer<typeof FLEET_SEEN_LINES.address>): readonly Sighting[] {
  const counted =
    firstNs === undefined || lastNs === undefined
      ? []
      : [{ device, address, packets, fromNs: BigInt(firstNs), toNs: BigInt(lastNs) + 1n }]
  const possible = spans.map((span) => ({
    device,
    address,
    packets: undefined,
    fromNs: BigInt(span.fromNs),
    toNs: BigInt(span.toNs),
  }))
  return [...counted, ...possible]
}

function brokenOff(): Problem {
  return new Problem({ code: 'broken-off', status: 0, detail: TEXTS.timeline.search.brokenOff })
}

/** Distance at which a mark is hit. */
const HIT_PX = 6

/** The sighting of this lane that is closest to the instant, if it is close enough to be meant. */
export function sightingAt(
  sightings: readonly Sighting[],
  ns: bigint,
  { view, widthPx }: { readonly view: TimeView; readonly widthPx: number },
): Sighting | undefined {
  const distancePx = ({ fromNs, toNs }: TimeView): number => {
    const nearest = ns < fromNs ? fromNs : ns >= toNs ? toNs : ns
    return Math.abs(placeOf(view, nearest) - placeOf(view, ns)) * widthPx
  }
  return sightings
    .filter((sighting) => distancePx(sighting) <= HIT_PX)
    .toSorted((a, b) => distancePx(a) - distancePx(b))[0]
}
