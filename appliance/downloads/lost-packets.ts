/** What a file in pcapng says about packets that are missing in it. Pure. */
import type { StreamFiles } from '../../native/download-options.ts'
import { LOG_ENTRY_BYTES, readLogEntry, SegmentFlag } from '../../native/segment-entry.ts'
import type { DownloadQuery } from '../../src/shared/query/download/download-query.ts'
import { gapsIn, type TimedEvent } from '../store/recorded-time.ts'
import type { HeldCaptures, TimeSpan } from '../store/removed-spans.ts'
import type { StreamSelection } from './select-streams.ts'

export interface LostPackets {
  /** Times between two captures, in order. */
  readonly gaps: readonly TimeSpan[]
  /** Times inside a capture in which no recorder was running, in order. */
  readonly interruptions: readonly TimeSpan[]
  /** The captures of the selection that could not store every packet. */
  readonly drops: readonly { readonly captureName: string; readonly ring: bigint; readonly disk: bigint }[]
  /** Segments of the selection that have lost some packets. */
  readonly damaged: readonly (TimeSpan & { readonly port: number })[]
}

export const NOTHING_LOST: LostPackets = { gaps: [], interruptions: [], drops: [], damaged: [] }

export interface KnownLosses {
  readonly held: HeldCaptures
  readonly selection: Pick<StreamSelection, 'captures' | 'streams'>
  /** Those that are kept; older ones are gone, and with them what they say. */
  readonly events: readonly TimedEvent[]
}

/**
 * `gaps` are from the records of captures alone, so that the same request gives the same file, up to its end, as long
 * as these are kept.
 */
export function lostPackets(query: DownloadQuery, { held, selection, events }: KnownLosses): LostPackets {
  const gapsFrom = (told: readonly TimedEvent[]) =>
    gapsIn(query, 0n, { ...held, events: told, running: undefined, nowNs: query.endNs }).filter(
      ({ endNs }) => endNs < query.endNs,
    )
  const between = gapsFrom([])
  const isBetween = (gap: TimeSpan) =>
    between.some(({ beginNs, endNs }) => beginNs === gap.beginNs && endNs === gap.endNs)
  return {
    gaps: query.kind === 'timerange' ? between : [],
    interruptions: gapsFrom(events).filter((gap) => !isBetween(gap)),
    drops: held.captures.flatMap(({ name, drops }) =>
      drops === undefined || drops.ring + drops.disk === 0n || !selection.captures.includes(name)
        ? []
        : { captureName: name, ring: drops.ring, disk: drops.disk },
    ),
    damaged: selection.streams.flatMap(damagedOf),
  }
}

function damagedOf({ port, segments }: StreamFiles): LostPackets['damaged'] {
  const entries = Buffer.from(segments.buffer, segments.byteOffset, segments.byteLength)
  const damaged: (TimeSpan & { readonly port: number })[] = []
  for (let at = 0; at < entries.length; at += LOG_ENTRY_BYTES) {
    const { flags, minNs, maxNs } = readLogEntry(entries, at)
    if ((flags & SegmentFlag.damaged) !== 0) damaged.push({ port, beginNs: minNs, endNs: maxNs })
  }
  return damaged
}
