/** The answer of a count of packets, line by line, by a device and over a fleet. */
import { z } from 'zod'
import { decimal, failure, integer, named, nanoseconds } from './schema-parts.ts'

const counted = {
  packets: decimal.describe('Packets that the download would deliver'),
  bytes: decimal.describe('Bytes of the PCAP, before compression'),
}

/** Hidden from callers with a filter, because it includes packets that they may not see. */
const read = {
  checkedBytes: decimal.describe('Bytes of stored packets that were read and filtered so far'),
  rangeBytes: decimal.describe('Bytes of the stored packets of the range'),
}

const ended = {
  ...counted,
  complete: z
    .boolean()
    .describe(
      'true: a download of this query delivers exactly this. false: blocks are damaged, or CountBytesMax was reached',
    ),
  countedToNs: nanoseconds
    .optional()
    .describe(
      'CountBytesMax was reached: only packets that were captured before this time are counted, and these exactly',
    ),
  checkedBytes: read.checkedBytes.optional(),
  rangeBytes: read.rangeBytes.optional(),
  corruptBlocks: decimal
    .optional()
    .describe('Blocks that were left out because they are damaged; absent from older versions'),
  agedOutBeforeNs: nanoseconds.optional().describe('Packets of the range before this time have been removed'),
}

/** Each line of the answer is one of these. */
export const COUNT_LINES = {
  progress: named('CountProgress', { ...counted, ...read }),
  end: named('CountEnd', { end: z.literal(true), ...ended }),
  error: named('CountError', { error: failure }),
} as const

const device = z.string().describe('The name of the device')
const devices = z.array(z.string())

/** Each line of the answer over several devices is one of these. */
export const FLEET_COUNT_LINES = {
  progress: named('FleetCountProgress', { device, ...COUNT_LINES.progress.shape }),
  counted: named('FleetCountDevice', {
    device,
    counted: z.literal(true).describe('The last line of this device'),
    ...ended,
  }),
  failure: named('FleetCountFailure', { device, error: failure }),
  end: named('FleetCountEnd', {
    end: z.literal(true),
    packets: decimal.describe('The sum of the devices that answered'),
    bytes: decimal.describe('Bytes of one PCAP with these packets, before compression'),
    exact: z
      .boolean()
      .describe(
        'true: a download delivers exactly this. false, and complete: at most this, because only a merge of the devices knows which packets ' +
          'Dedup, TSMax, MaxPackets or MaxBytes leave out. false, and not complete: this was counted so far',
      ),
    complete: z.boolean().describe('Whether all devices answered, and each answer is complete'),
    devices: integer.describe('Devices that were asked'),
    unanswered: devices.describe(
      'Devices that did not answer, or not to the end; each has a line with its error',
    ),
    partial: devices.describe(
      'Devices whose count is not complete: blocks are damaged, or CountBytesMax was reached',
    ),
  }),
  error: COUNT_LINES.error,
} as const
