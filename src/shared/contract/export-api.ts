/** Exports: downloads that run as jobs, whose files are kept; and schedules, which order them again and again. */
import type { ErrorCode } from '../base/error.ts'
import { EXPORT_FILE_PARAMETERS, EXPORT_LIST_PARAMETERS } from '../query/export-options.ts'
import { DOWNLOAD_TABLES } from '../query/parse-download-query.ts'
import { ENCODING_FILES } from '../query/query-values.ts'
import { type Answer, type Endpoint, type HeaderRow, json } from './endpoint.ts'
import { EXPORT, EXPORT_MANIFEST, EXPORTS, SCHEDULE, SCHEDULES } from './export-answers.ts'
import { CAPFLEET_DEVICE, LAST_EVENT_ID, LOCATION } from './headers.ts'

const IDEMPOTENCY_KEY: HeaderRow = {
  name: 'Idempotency-Key',
  says: 'A text of the client: the same one again, within 24 hours, is the same order and makes no second one. The 1,000 newest of a user are known.',
}

/** What may be wrong with an order. */
const ORDER_ERRORS: readonly ErrorCode[] = [
  'bad-parameter',
  'bad-bpf',
  'bad-frame-filter',
  'bad-regex',
  'bad-timezone',
  'ambiguous-timezone',
  'unknown-device',
  'discovery-pending',
  'no-device',
  'unknown-capture',
  'ambiguous-capture',
  'idempotency-conflict',
  'exports-off',
  'user-quota',
  'device-unreachable',
  'device-protocol',
  'device-rejected',
  'device-timeout',
  'draining',
  'scheduler-unavailable',
  'audit-unavailable',
  'export-store-full',
  'cross-site',
]

/** The 202 of whatever becomes an export. */
export const EXPORT_ORDERED: Answer = {
  ...json(EXPORT, 'The export is ordered; workers run it.'),
  status: 202,
  headers: [LOCATION],
}

const RANGE_HEADERS: readonly HeaderRow[] = [
  { name: 'Range', says: 'The bytes that are wanted: bytes=1048576- goes on behind the first MiB.' },
  { name: 'If-Range', says: 'The ETag of which Range is a part; else the whole file comes.' },
  { name: 'If-None-Match', says: 'ETags that the client has: answered 304 without a body.' },
]

const FILE_HEADERS: readonly HeaderRow[] = [
  { name: 'ETag', says: 'The SHA-256 of the whole file, strong.' },
  { name: 'Content-Disposition', says: 'The name of the file.' },
]

/** A file is one of these, by its compression. */
const FILE_BODIES: Answer['bodies'] = Object.fromEntries(
  Object.values(ENCODING_FILES).map(({ mediaType }) => [mediaType, 'bytes'] as const),
)

const EXPORT_FILE_ERRORS: readonly ErrorCode[] = [
  'unknown-export',
  'export-unfinished',
  'export-target-unavailable',
  'scheduler-unavailable',
]

export const EXPORT_API = {
  order: {
    method: 'POST',
    path: '/v1/exports',
    scope: 'export:create',
    filtered: 'passing',
    others: 'nothing',
    isChange: true,
    takesKnownOnly: true,
    group: 'Exports',
    says:
      'Orders an export: a download by StreamName, or by TSBegin and TSEnd from the chosen devices, that workers run as a job. ' +
      'Its files are kept until they expire.',
    parameters: DOWNLOAD_TABLES.export,
    context: { at: 'fleet' },
    requestHeaders: [CAPFLEET_DEVICE, IDEMPOTENCY_KEY],
    answers: [EXPORT_ORDERED],
    errors: ORDER_ERRORS,
  },
  list: {
    method: 'GET',
    path: '/v1/exports',
    scope: 'export:read',
    filtered: 'passing',
    others: 'own',
    group: 'Exports',
    says: 'The exports of the user, newest first; for whoever has the scope audit:read those of all users.',
    parameters: [EXPORT_LIST_PARAMETERS],
    answers: [json(EXPORTS, 'A page of exports.')],
    errors: ['scheduler-unavailable'],
  },
  show: {
    method: 'GET',
    path: '/v1/exports/:id',
    scope: 'export:read',
    filtered: 'passing',
    others: 'own',
    group: 'Exports',
    says: 'One export: for its user, and for whoever has the scope audit:read.',
    parameters: [{}],
    answers: [json(EXPORT, 'The export.')],
    errors: ['unknown-export', 'scheduler-unavailable'],
  },
  cancel: {
    method: 'DELETE',
    path: '/v1/exports/:id',
    scope: 'export:create',
    filtered: 'passing',
    others: 'nothing',
    isChange: true,
    group: 'Exports',
    says: 'Cancels an export that runs, and removes the files of one that has ended.',
    parameters: [{}],
    answers: [json(EXPORT, 'The export as it was; workers remove what is left of it.')],
    errors: ['unknown-export', 'scheduler-unavailable', 'audit-unavailable', 'cross-site'],
  },
  fill: {
    method: 'POST',
    path: '/v1/exports/:id/fill',
    scope: 'export:create',
    filtered: 'passing',
    others: 'nothing',
    isChange: true,
    group: 'Exports',
    says: 'Fetches what is missing in a partial export, and makes its files anew. Until then the old ones stay.',
    parameters: [{}],
    answers: [EXPORT_ORDERED],
    errors: [
      'unknown-export',
      'exports-off',
      'export-unfinished',
      'scheduler-unavailable',
      'audit-unavailable',
      'cross-site',
    ],
  },
  events: {
    method: 'GET',
    path: '/v1/exports/:id/events',
    scope: 'export:read',
    filtered: 'passing',
    others: 'own',
    group: 'Exports',
    says: 'How the export goes on, as it does, until it has ended: server-sent events "export", whose data is the export as GET shows it.',
    parameters: [{}],
    requestHeaders: [LAST_EVENT_ID],
    answers: [{ says: 'Events, until the export has ended.', bodies: { 'text/event-stream': 'text' } }],
    errors: ['unknown-export', 'scheduler-unavailable', 'event-streams-exhausted', 'draining'],
  },
  file: {
    method: 'GET',
    path: '/v1/exports/:id/file',
    scope: 'export:read',
    filtered: 'passing',
    others: 'own',
    group: 'Exports',
    says: 'A file of an export that has ended well. Goes on where a client broke off, by Range.',
    parameters: [EXPORT_FILE_PARAMETERS],
    requestHeaders: RANGE_HEADERS,
    answers: [
      { says: 'The file.', bodies: FILE_BODIES, headers: FILE_HEADERS },
      { status: 206, says: 'The part that Range names.', bodies: FILE_BODIES, headers: FILE_HEADERS },
      { status: 304, says: 'The client has it.', bodies: {} },
    ],
    errors: [...EXPORT_FILE_ERRORS, 'range-not-satisfiable', 'audit-unavailable', 'draining'],
  },
  manifest: {
    method: 'GET',
    path: '/v1/exports/:id/manifest',
    scope: 'export:read',
    filtered: 'passing',
    others: 'own',
    isRecordedRead: true,
    group: 'Exports',
    says: 'What is in the files of an export, with their hashes: the manifest that lies beside them.',
    parameters: [{}],
    answers: [json(EXPORT_MANIFEST, 'The manifest.')],
    errors: EXPORT_FILE_ERRORS,
  },
  schedule: {
    method: 'POST',
    path: '/v1/schedules',
    scope: 'export:create',
    filtered: 'passing',
    others: 'nothing',
    isChange: true,
    takesKnownOnly: true,
    group: 'Exports',
    says: 'Orders an export again and again. Relative times such as -1h count from each run, so that runs join without a gap.',
    parameters: DOWNLOAD_TABLES.schedule,
    context: { at: 'fleet' },
    requestHeaders: [CAPFLEET_DEVICE, IDEMPOTENCY_KEY],
    answers: [{ ...json(SCHEDULE, 'The schedule is kept.'), status: 201, headers: [LOCATION] }],
    errors: [...ORDER_ERRORS, 'out-of-bounds'],
  },
  schedules: {
    method: 'GET',
    path: '/v1/schedules',
    scope: 'export:read',
    filtered: 'passing',
    others: 'own',
    group: 'Exports',
    says: 'The schedules of the user; for whoever has the scope audit:read those of all users.',
    parameters: [{}],
    answers: [json(SCHEDULES, 'The schedules.')],
    errors: ['scheduler-unavailable'],
  },
  showSchedule: {
    method: 'GET',
    path: '/v1/schedules/:id',
    scope: 'export:read',
    filtered: 'passing',
    others: 'own',
    group: 'Exports',
    says: 'One schedule: for its user, and for whoever has the scope audit:read.',
    parameters: [{}],
    answers: [json(SCHEDULE, 'The schedule.')],
    errors: ['unknown-schedule', 'scheduler-unavailable'],
  },
  unschedule: {
    method: 'DELETE',
    path: '/v1/schedules/:id',
    scope: 'export:create',
    filtered: 'passing',
    others: 'nothing',
    isChange: true,
    group: 'Exports',
    says: 'Ends a schedule. Its exports stay.',
    parameters: [{}],
    answers: [json(SCHEDULE, 'The schedule as it was.')],
    errors: ['unknown-schedule', 'scheduler-unavailable', 'audit-unavailable', 'cross-site'],
  },
} as const satisfies Record<string, Endpoint>
