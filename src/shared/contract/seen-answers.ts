/** The answer of a search for addresses, line by line, by a device and over a fleet. */
import { z } from 'zod'
import { decimal, failure, integer, named, nanoseconds } from './schema-parts.ts'

const span = named('SeenSpan', { fromNs: nanoseconds, toNs: nanoseconds })

/** Each line of the answer is one of these. */
export const SEEN_LINES = {
  address: named('SeenAddress', {
    address: z.string().describe('An address or network of the request that was seen, or may have been'),
    packets: decimal.optional().describe('With Verify: packets that were counted'),
    bytes: decimal.optional().describe('Their original lengths'),
    firstNs: nanoseconds.optional().describe('The time of the first of them'),
    lastNs: nanoseconds.optional().describe('The time of the last of them'),
    spans: z
      .array(span)
      .describe(
        'Half-open times in which packets of the address may be that were not counted: at most 256, fewer for long lists, at least a second apart. ' +
          'Outside of them it was not seen',
      ),
  }),
  progress: named('SeenProgress', {
    checkedBytes: decimal.describe('Bytes of packets that were read so far'),
  }),
  end: named('SeenEnd', {
    end: z.literal(true),
    addresses: integer.describe('Addresses and networks that were asked for'),
    complete: z
      .boolean()
      .describe(
        'Whether every packet that is stored in the range was taken into account: false if blocks are damaged, if VerifyBytesMax was reached, ' +
          'or if the packets were counted in a download that took longer than an hour or whose end was not proved',
      ),
    agedOutBeforeNs: nanoseconds
      .optional()
      .describe('Packets of the range before this time have been removed'),
    otherLinkTypes: z
      .array(integer)
      .describe(
        'Link types of captures in the range whose packets have no addresses that are understood; they were not searched',
      ),
  }),
  error: named('SeenError', { error: failure }),
} as const

const device = z.string().describe('The name of the device')
const devices = z.array(z.string())

/** Each line of the answer over several devices is one of these. */
export const FLEET_SEEN_LINES = {
  address: named('FleetSeenAddress', { device, ...SEEN_LINES.address.shape }),
  progress: named('FleetSeenProgress', { device, ...SEEN_LINES.progress.shape }),
  failure: named('FleetSeenFailure', { device, error: failure }),
  end: named('FleetSeenEnd', {
    end: z.literal(true),
    addresses: integer.describe('Addresses and networks that were asked for'),
    devices: integer.describe('Devices that were asked'),
    complete: z.boolean().describe('Whether all devices answered, and each answer is complete'),
    unanswered: devices.describe(
      'Devices that did not answer, or not to the end; each has a line with its error. Addresses may have been seen there',
    ),
    partial: devices.describe(
      'Devices whose answer is not complete: blocks are damaged, VerifyBytesMax was reached, or a download of a device that cannot search ' +
        'took longer than an hour or did not prove its end',
    ),
    agedOut: z
      .array(named('SeenAgedOut', { device, beforeNs: nanoseconds }))
      .describe('Devices that have removed packets of the range, all before this time'),
    otherLinkTypes: z
      .array(named('SeenOtherLinkTypes', { device, linkTypes: z.array(integer) }))
      .describe('As for a device'),
  }),
  error: SEEN_LINES.error,
} as const
