/** Schemas of what devices recorded when: for one device, and for the fleet. */
import { z } from 'zod'
import { decimal, failure, integer, named, nanoseconds } from './schema-parts.ts'

const span = named('Span', { fromNs: nanoseconds, toNs: nanoseconds })

/** What one device recorded. */
const RECORDED = {
  packets: z.array(integer).describe('Packets of each part of the range, in the order of time'),
  bytes: z.array(integer).describe('Bytes of each part as PCAP records: headers and captured bytes'),
  exact: z
    .boolean()
    .describe(
      'Whether every count is exact. If false, packets close to the edge of a part may be counted in the neighbouring part: ' +
        'where an edge falls inside a millisecond, or inside a part of a segment, its packets are assumed to be spread evenly ' +
        'over its time. The sum of all parts is exact if the range begins and ends outside of what is stored.',
    ),
  gaps: z
    .array(span)
    .describe(
      'When nothing was recorded, up to now. Gaps between two captures shorter than half a part are left out',
    ),
  dropped: z
    .array(span.extend({ packets: decimal }))
    .describe(
      'Where packets arrived but could not be stored. Each is accurate to the second, or lies somewhere within a whole capture',
    ),
  trimmed: z.array(span).describe('Where packets were removed to free space'),
  damaged: z
    .array(span)
    .describe(
      'Where the index is known to be damaged: packets are counted from the record of their capture and assumed to be spread evenly',
    ),
}

const RANGE = {
  fromNs: nanoseconds,
  toNs: nanoseconds,
  bucketNs: decimal.describe('The length of each part; the last part ends with the range'),
}

export const ACTIVITY = named('Activity', { ...RANGE, ...RECORDED })

export const FLEET_ACTIVITY = named('FleetActivity', {
  ...RANGE,
  devices: z.array(
    z.union([
      z.object({ device: z.string(), ...RECORDED }),
      z.object({ device: z.string(), error: failure }),
    ]),
  ),
})
