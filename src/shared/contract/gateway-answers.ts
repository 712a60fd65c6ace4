/** The answers of the gateway about itself and its fleet, as schemas. */
import { z } from 'zod'
import { ROLES } from '../base/scopes.ts'
import { decimal, failure, integer, named, nanoseconds } from './schema-parts.ts'

const text = z.string()
const boolean = z.boolean()
const instant = z.iso.datetime()

/** What each device said to a call at the root. */
export const FLEET_REPLIES = named('FleetReplies', {
  Devices: z.array(
    z.union([
      z.object({
        Device: text,
        Status: z.literal(200),
        Body: z.unknown().describe("The device's own answer; a text that is no JSON as a string"),
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
      'api: of another maker, which is asked for what the API names; legacy: the same without the paths below /api/v1/; null: not known yet',
    ),
  url: text,
  reachable: boolean.nullable().describe('null: not known yet'),
  since: instant.nullable(),
  probedAt: instant.nullable(),
  probeMs: z.number().nullable(),
  error: failure.nullable(),
  lacks: z
    .array(z.object({ path: text, detail: text }))
    .describe('What the device did not answer, or not as the API has it, when it was asked last'),
  ignores: z
    .array(text)
    .describe(
      'Parameters of downloads that the device passes over, as the configuration says: the gateway does their work or refuses them',
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
      drops: integer.nullable().describe('Packets that it has lost'),
    })
    .nullable()
    .describe('What the device captures; null: it does not tell'),
  storeBytes: integer.nullable().describe('Of the file system that holds the store'),
  storeFreeBytes: integer.nullable(),
  slotsTotal: integer,
  slotsLimit: integer
    .nullable()
    .describe(
      'How many streams the device is given for a while, because it refused one more; null: slotsTotal',
    ),
  slotsUsed: integer.nullable(),
  waiting: integer.nullable(),
  readers: integer.nullable().describe('Downloads that the device itself counts'),
})

export const DEVICE_REPORTS = named('Devices', { devices: z.array(DEVICE_REPORT) })

export const QUEUE_PLACE = named('QueuePlace', {
  id: text,
  state: z
    .enum(['streaming', 'suspect', 'waiting'])
    .describe('suspect: its gateway is silent, and the device may still be sending'),
  devices: z.array(text),
  class: z.enum(['interactive', 'bulk']),
  user: text,
  replica: text,
  enqueuedAt: instant,
  grantedAt: instant.nullable(),
  position: integer.nullable(),
  etaMs: integer.nullable().describe('When a stream is expected to be free; null: nobody can tell'),
})

export const QUEUE = named('Queue', { requests: z.array(QUEUE_PLACE) })

export const RECEIPT = named('Receipt', {
  id: text,
  status: z
    .enum(['streaming', 'complete', 'truncated', 'partial', 'unverified', 'failed', 'client-gone'])
    .describe(
      'truncated: ended at MaxBytes or MaxPackets; partial: devices or damaged blocks are missing; unverified: a device of another maker closed the connection at its end, as a cut one ends too',
    ),
  user: text,
  startedAt: instant,
  endedAt: instant.nullable(),
  waitedMs: z.number().nullable(),
  path: text,
  query: text.describe('As understood: times in nanoseconds, no parameter that nobody knows'),
  resumedId: text.nullable(),
  packets: decimal.nullable(),
  bytes: decimal.describe('Of the body as sent, compressed where it was'),
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
        .describe('Blocks of packets that are left out, because they are damaged'),
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
        .describe('What was made under the name before is of another user, who had it then'),
      devices: text.optional().describe('The bounds, as the users file has them'),
      filter: text.optional(),
      spanMaxS: integer.optional(),
      bytesPerDay: integer.optional(),
      streamsMax: integer.optional(),
    }),
  ),
})

export const FLEET_ESTIMATE = named('FleetEstimate', {
  kind: z.enum(['single', 'timerange', 'splittime']),
  packets: decimal.nullable().describe('null: callers with a filter are told no counts, or no device told'),
  bytes: decimal.nullable().describe('Of the PCAP, before compression'),
  exact: boolean.describe(
    'Whether it will be that much; else it is that much at most, of the devices that told',
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
