/** What devices recorded when, as schemas: of one device, and of the fleet. */
import { z } from 'zod'
import { decimal, failure, integer, named, nanoseconds } from './schema-parts.ts'

const span = named('Span', { fromNs: nanoseconds, toNs: nanoseconds })

/** What one device recorded. */
const RECORDED = {
  packets: z.array(integer).describe('Of each part of the range, the first one first'),
  bytes: z.array(integer).describe('As PCAP records: headers and captured bytes'),
  exact: z
    .boolean()
    .describe(
      'Whether each part has just its packets. Else some close to an edge may be counted on its other side: of a ' +
        'millisecond, or of a part of a segment, with an edge inside, packets are taken as spread evenly over its time. ' +
        'The sum of all parts is exact where the range begins and ends outside of what is stored.',
    ),
  gaps: z
    .array(span)
    .describe(
      'When nothing was recorded, up to now; without gaps of less than half a part between two captures',
    ),
  dropped: z
    .array(span.extend({ packets: decimal }))
    .describe('Where packets came and could not be kept; to the second, or somewhere in a whole capture'),
  trimmed: z.array(span).describe('Where packets were removed to make room'),
  damaged: z
    .array(span)
    .describe(
      'Of which the index is damaged, as far as it was looked at: packets are counted as the record of their capture has them, spread evenly',
    ),
}

const RANGE = {
  fromNs: nanoseconds,
  toNs: nanoseconds,
  bucketNs: decimal.describe('The length of each part; the last one ends with the range'),
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
