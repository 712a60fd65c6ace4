/** Schemas of the answers about exports and their schedules. */
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
  final: z.boolean().describe('The packets are lost permanently: fill cannot fetch them'),
  error: failure,
})

const EXPORTED_FILE = named('ExportedFile', {
  name: text,
  bytes: decimal,
  packets: decimal,
  firstNs: nanoseconds.nullable(),
  lastNs: nanoseconds.nullable(),
  sha256: text.describe('SHA-256 of the file as stored; also its ETag'),
})

const FORCED_FILTERS = z
  .array(text)
  .describe("The BPF filters from the user's bounds: the files have only packets that pass all of them")

export const EXPORT = named('Export', {
  id: text,
  user: text,
  state: z
    .enum(EXPORT_STATES)
    .describe(
      'partial: complete except for the gaps listed in devices[].missing; paused: waits for free space',
    ),
  createdAt: instant,
  startedAt: instant.nullable(),
  endedAt: instant.nullable(),
  expiresAt: instant.nullable().describe('When the files are deleted'),
  kind: z.enum(['single', 'timerange', 'splittime']),
  query: text.describe('The query as understood: times in nanoseconds, unknown parameters left out'),
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
    fetchedBytes: decimal.describe('Bytes received from the devices, before compression'),
    estimatedBytes: decimal
      .nullable()
      .describe('Bytes expected from the devices, before compression; with a filter, an upper bound'),
    writtenBytes: decimal.describe('Bytes written to the files, after compression if they are compressed'),
    doneNs: nanoseconds.nullable().describe('All packets before this time are in the files'),
    ratio: z.number().nullable().describe('From 0 to 1'),
    bytesPerSecond: z.number().nullable(),
    etaMs: integer.nullable(),
    waiting: z
      .object({ device: text, detail: text })
      .nullable()
      .describe(
        'Why the next part of the range is not fetched yet: the device it names has not captured up to the end of that part',
      ),
  }),
  devices: z.array(
    z.object({
      device: text,
      state: z.enum(['waiting', 'fetching', 'complete', 'missing']),
      packets: decimal,
      bytes: decimal,
      firstNs: nanoseconds.nullable(),
      lastNs: nanoseconds.nullable(),
      retries: integer.describe('How often the request to the device was retried'),
      missing: z.array(MISSING_PART),
    }),
  ),
  files: z.array(EXPORTED_FILE).describe('Empty until the export has ended successfully'),
})

export const EXPORTS = named('Exports', {
  exports: z.array(EXPORT),
  next: text.nullable().describe('After= of the next page; null: this is the last page'),
  workers: integer.describe('Number of workers available to run exports'),
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
    'As in the export; missing in manifests of earlier versions',
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
  query: text.describe('The query as given'),
  createdAt: instant,
  nextAt: instant.nullable(),
  lastAt: instant.nullable().describe('The last run that created an export'),
  lastExportId: text.nullable(),
  error: failure.nullable().describe('Why the last run created no export'),
})

export const SCHEDULES = named('Schedules', { schedules: z.array(SCHEDULE) })
