/** Schemas of the gateway's answers about itself and its fleet. */
import { z } from 'zod'
import { ROLES } from '../base/scopes.ts'
import { decimal, failure, integer, named, nanoseconds } from './schema-parts.ts'

const text = z.string()
const boolean = z.boolean()
const instant = z.iso.datetime()

/** Each device's reply to a call at the root. */
export const FLEET_REPLIES = named('FleetReplies', {
  Devices: z.array(
    z.union([
      z.object({
        Device: text,
        Status: z.literal(200),
        Body: z.unknown().describe("The device's own answer; as a string if it is not JSON"),
      }),
      z.object({ Device: text, Status: integer, error: failure }),
    ]),
  ),
})

export const DEVICE_REPORT = named('Device', {
  name: text,
  site: text.nullable(),
  kind: z
    .enum(['capfleet', 'api', 'legacy'])
    .nullable()
    .describe(
      'api: a third-party device, which is asked only for what the API defines; legacy: the same, without the paths below /api/v1/; null: not known yet',
    ),
  url: text,
  reachable: boolean.nullable().describe('null: not known yet'),
  since: instant.nullable(),
  probedAt: instant.nullable(),
  probeMs: z.number().nullable(),
  error: failure.nullable(),
  lacks: z
    .array(z.object({ path: text, detail: text }))
    .describe('Paths that the device did not answer as the API defines when it was last asked'),
  ignores: z
    .array(text)
    .describe(
      'Download parameters that the device ignores, according to the configuration: the gateway applies them itself or rejects them',
    ),
  breaker: z.enum(['closed', 'open', 'trial']),
  version: text.nullable(),
  oldestPacketNs: nanoseconds.nullable(),
  clockOffsetNs: decimal.nullable().describe("The device's clock minus the gateway's"),
  clockErrorNs: decimal.nullable(),
  ptp: z.object({ sync: boolean, offsetNs: z.number().nullable() }).nullable(),
  capture: z
    .object({
      state: text.nullable(),
      name: text.nullable(),
      gbps: z.number().nullable(),
      mpps: z.number().nullable().describe('Millions of packets per second'),
      drops: integer.nullable().describe('Packets that the capture has lost'),
    })
    .nullable()
    .describe('The capture of the device; null: the device does not report it'),
  storeBytes: integer.nullable().describe('Size of the file system that holds the store'),
  storeFreeBytes: integer.nullable(),
  slotsTotal: integer,
  slotsLimit: integer
    .nullable()
    .describe(
      'Temporarily reduced number of streams, because the device rejected one more; null: slotsTotal',
    ),
  slotsUsed: integer.nullable(),
  waiting: integer.nullable(),
  readers: integer.nullable().describe('Running downloads as the device reports them'),
})

export const DEVICE_REPORTS = named('Devices', { devices: z.array(DEVICE_REPORT) })

export const QUEUE_PLACE = named('QueuePlace', {
  id: text.describe('A count or a search has a row with an id of its own for each device'),
  request: text.describe(
    'Capfleet-Request-Id of the request that it belongs to; DELETE of this id cancels all of its rows',
  ),
  state: z
    .enum(['streaming', 'suspect', 'waiting'])
    .describe('suspect: its gateway does not respond, and the device may still be sending'),
  devices: z.array(text),
  class: z.enum(['interactive', 'bulk']),
  user: text,
  replica: text,
  enqueuedAt: instant,
  grantedAt: instant.nullable(),
  position: integer.nullable(),
  etaMs: integer.nullable().describe('Milliseconds until a stream is expected to be free; null: unknown'),
  export: text.nullable().describe('The export that the request belongs to'),
  capture: text.nullable().describe('The capture of the request or the export'),
  fromNs: nanoseconds.nullable().describe('The range of the request or the export; null: none, or unknown'),
  toNs: nanoseconds.nullable(),
  bytes: decimal
    .nullable()
    .describe('Bytes sent to the client so far; up to 10 s old if another gateway sends them'),
})

export const QUEUE = named('Queue', { requests: z.array(QUEUE_PLACE) })

export const RECEIPT = named('Receipt', {
  id: text,
  status: z
    .enum(['streaming', 'complete', 'truncated', 'partial', 'unverified', 'failed', 'client-gone'])
    .describe(
      'truncated: ended at MaxBytes or MaxPackets; partial: devices or damaged blocks are missing; unverified: a third-party device ended its answer by closing the connection, which looks the same as a cut one, or a device that was asked again from a later time could not count the damaged blocks before that',
    ),
  user: text,
  startedAt: instant,
  endedAt: instant.nullable(),
  waitedMs: z.number().nullable(),
  path: text,
  query: text.describe('The query as understood: times in nanoseconds, unknown parameters left out'),
  resumedId: text.nullable(),
  packets: decimal.nullable(),
  bytes: decimal.describe('Bytes of the body as sent, after compression if it was compressed'),
  nextNs: nanoseconds.nullable().describe('The first packet that a limit left out'),
  sha256: text.nullable(),
  duplicates: decimal.nullable(),
  error: failure.nullable(),
  devices: z.array(
    z.object({
      device: text,
      status: text,
      packets: decimal.nullable(),
      bytes: decimal,
      firstNs: nanoseconds.nullable(),
      lastNs: nanoseconds.nullable(),
      corruptBlocks: decimal
        .nullable()
        .describe('Blocks of packets that are left out because they are damaged'),
      retries: integer,
      outOfOrder: integer,
      stalledMs: z.number(),
      clockOffsetNs: decimal.nullable(),
      clockErrorNs: decimal.nullable(),
      missing: z.object({ fromNs: nanoseconds, toNs: nanoseconds }).nullable(),
      error: failure.nullable(),
    }),
  ),
})

export const RECEIPTS = named('Receipts', { requests: z.array(RECEIPT) })

export const USERS = named('Users', {
  users: z.array(
    z.object({
      name: text,
      role: z.enum(ROLES),
      since: text
        .optional()
        .describe(
          'Anything created under this name before this time belongs to another user, who had the name then',
        ),
      devices: text.optional().describe('The bounds, as in the users file'),
      filter: text.optional(),
      spanMaxS: integer.optional(),
      bytesPerDay: integer.optional(),
      streamsMax: integer.optional(),
    }),
  ),
})

export const FLEET_ESTIMATE = named('FleetEstimate', {
  kind: z.enum(['single', 'timerange', 'splittime']),
  packets: decimal
    .nullable()
    .describe('null: callers with a filter get no counts, or no device reported any'),
  bytes: decimal.nullable().describe('Bytes of the PCAP, before compression'),
  exact: boolean.describe(
    'true: the numbers are exact; false: they are upper bounds for the devices that answered',
  ),
  ignored: z.array(text),
  devices: z.array(
    z.union([
      z.object({
        device: text,
        packets: decimal.nullable(),
        bytes: decimal.nullable(),
        exact: boolean,
        linkType: integer.nullable(),
      }),
      z.object({ device: text, error: failure }),
    ]),
  ),
})
