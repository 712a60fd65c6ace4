/** The answers about exports and their schedules, as schemas. */
import { z } from 'zod'
import { decimal, failure, integer, named, nanoseconds } from './schema-parts.ts'

const text = z.string()
const instant = z.iso.datetime()

export const EXPORT_STATES = [
  'queued',
  'running',
  'paused',
  'complete',
  'partial',
  'failed',
  'cancelled',
] as const

const MISSING_PART = named('MissingPart', {
  fromNs: nanoseconds,
  toNs: nanoseconds,
  final: z.boolean().describe('The packets are gone for good: fill will not find them'),
  error: failure,
})

const EXPORTED_FILE = named('ExportedFile', {
  name: text,
  bytes: decimal,
  packets: decimal,
  firstNs: nanoseconds.nullable(),
  lastNs: nanoseconds.nullable(),
  sha256: text.describe('Of the file as it is, and its ETag'),
})

const FORCED_FILTERS = z
  .array(text)
  .describe('The BPF filters in the bounds of its user: only packets that pass all of them are in the files')

export const EXPORT = named('Export', {
  id: text,
  user: text,
  state: z
    .enum(EXPORT_STATES)
    .describe('partial: whole but for the holes that devices[].missing names; paused: waits for space'),
  createdAt: instant,
  startedAt: instant.nullable(),
  endedAt: instant.nullable(),
  expiresAt: instant.nullable().describe('When the files are removed'),
  kind: z.enum(['single', 'timerange', 'splittime']),
  query: text.describe('As understood: times in nanoseconds, no parameter that nobody knows'),
  forcedFilters: FORCED_FILTERS,
  onMissing: z.enum(['fail', 'partial']),
  partTimeNs: decimal.nullable(),
  partBytes: decimal.nullable(),
  target: text,
  reason: text.nullable(),
  scheduleId: text.nullable(),
  error: failure.nullable(),
  progress: z.object({
    stage: z.enum(['waiting', 'preparing', 'fetching', 'publishing', 'ended']),
    fetchedBytes: decimal.describe('Of the devices, before compression'),
    estimatedBytes: decimal
      .nullable()
      .describe('Of the devices, before compression; an upper bound with a filter'),
    writtenBytes: decimal.describe('Of the files, compressed where they are'),
    doneNs: nanoseconds.nullable().describe('All packets before this time are in the files'),
    ratio: z.number().nullable().describe('From 0 to 1'),
    bytesPerSecond: z.number().nullable(),
    etaMs: integer.nullable(),
    waiting: z
      .object({ device: text, detail: text })
      .nullable()
      .describe('Why the time that comes next is not fetched yet: its device has not reached the end of it'),
  }),
  devices: z.array(
    z.object({
      device: text,
      state: z.enum(['waiting', 'fetching', 'complete', 'missing']),
      packets: decimal,
      bytes: decimal,
      firstNs: nanoseconds.nullable(),
      lastNs: nanoseconds.nullable(),
      retries: integer.describe('How often the device was asked again'),
      missing: z.array(MISSING_PART),
    }),
  ),
  files: z.array(EXPORTED_FILE).describe('Empty until the export has ended well'),
})

export const EXPORTS = named('Exports', {
  exports: z.array(EXPORT),
  next: text.nullable().describe('After= of the next page; null: this is the last'),
  workers: integer.describe('Workers that are there to run them'),
})

export const EXPORT_MANIFEST = named('ExportManifest', {
  version: z.literal(1),
  program: text,
  id: text,
  user: text,
  reason: text.nullable(),
  state: z.enum(['complete', 'partial']),
  createdAt: instant,
  endedAt: instant,
  kind: z.enum(['single', 'timerange', 'splittime']),
  query: text,
  forcedFilters: FORCED_FILTERS.optional().describe(
    'As of the export; manifests of earlier versions lack it',
  ),
  packets: decimal,
  bytes: decimal,
  firstNs: nanoseconds.nullable(),
  lastNs: nanoseconds.nullable(),
  devices: z.array(
    z.object({
      device: text,
      packets: decimal,
      bytes: decimal,
      firstNs: nanoseconds.nullable(),
      lastNs: nanoseconds.nullable(),
      retries: integer,
      outOfOrder: integer,
      clockOffsetNs: decimal.nullable(),
      missing: z.array(MISSING_PART),
    }),
  ),
  files: z.array(EXPORTED_FILE),
})

export const SCHEDULE = named('ExportSchedule', {
  id: text,
  user: text,
  cron: text,
  cronZone: text,
  missed: z.enum(['makeup', 'skip']),
  kind: z.enum(['single', 'timerange', 'splittime']),
  query: text.describe('As it was given'),
  createdAt: instant,
  nextAt: instant.nullable(),
  lastAt: instant.nullable().describe('The last run that became an export'),
  lastExportId: text.nullable(),
  error: failure.nullable().describe('Why the last run became none'),
})

export const SCHEDULES = named('Schedules', { schedules: z.array(SCHEDULE) })
