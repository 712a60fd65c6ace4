/** Exports: downloads that run as jobs and whose files are stored; and schedules, which order them repeatedly. */
import type { ErrorCode } from '../base/error.ts'
import { EXPORT_FILE_PARAMETERS, EXPORT_LIST_PARAMETERS } from '../query/download/export-options.ts'
import { DOWNLOAD_TABLES } from '../query/download/parse-download-query.ts'
import { ENCODING_FILES } from '../query/download/query-values.ts'
import { type Answer, type Endpoint, type HeaderRow, json } from './endpoint.ts'
import { EXPORT, EXPORT_MANIFEST, EXPORTS, SCHEDULE, SCHEDULES } from './export-answers.ts'
import { CAPFLEET_DEVICE, LAST_EVENT_ID, LOCATION } from './headers.ts'

const IDEMPOTENCY_KEY: HeaderRow = {
  name: 'Idempotency-Key',
  says: 'A text chosen by the client. A repeated request with the same text within 24 hours refers to the same order and does not create a second one. The gateway remembers the 1,000 newest texts of each user.',
}

/** Errors in an order. */
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

/** The 202 answer to whatever becomes an export. */
export const EXPORT_ORDERED: Answer = {
  ...json(EXPORT, 'The export is queued; workers run it.'),
  status: 202,
  headers: [LOCATION],
}

const RANGE_HEADERS: readonly HeaderRow[] = [
  { name: 'Range', says: 'The requested bytes: bytes=1048576- continues after the first MiB.' },
  {
    name: 'If-Range',
    says: 'The ETag of the file that Range refers to. If it does not match, the whole file is sent.',
  },
  {
    name: 'If-None-Match',
    says: 'ETags that the client has. If one matches, the answer is 304 without a body.',
  },
]

const FILE_HEADERS: readonly HeaderRow[] = [
  { name: 'ETag', says: 'The SHA-256 of the whole file, as a strong ETag.' },
  { name: 'Content-Disposition', says: 'The name of the file.' },
]

/** The media type of a file depends on its format and compression. */
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
    changes: 'export',
    takesKnownOnly: true,
    takesForm: true,
    group: 'Exports',
    says:
      'Orders an export: a download by StreamName, or by TSBegin and TSEnd from the selected devices, that workers run as a job. ' +
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
    says: "The user's exports, newest first; callers with the scope audit:read get those of all users.",
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
    says: 'One export: for its user, and for callers with the scope audit:read.',
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
    changes: 'export',
    group: 'Exports',
    says: 'Cancels a queued or running export, or deletes the files of one that has ended.',
    parameters: [{}],
    answers: [json(EXPORT, 'The export as it was; workers delete what is left of it.')],
    errors: ['unknown-export', 'scheduler-unavailable', 'audit-unavailable', 'cross-site'],
  },
  fill: {
    method: 'POST',
    path: '/v1/exports/:id/fill',
    scope: 'export:create',
    filtered: 'passing',
    others: 'nothing',
    changes: 'export',
    group: 'Exports',
    says: 'Fetches the missing parts of a partial export, and replaces its files. Until then the old files stay available.',
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
    says: 'The progress of the export until it has ended, as server-sent events "export", whose data is the export as GET returns it.',
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
    says: 'A file of an export that has ended successfully. Range resumes an interrupted download.',
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
    says: 'The manifest that is stored next to the files of an export: their contents and hashes.',
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
    changes: 'schedule',
    takesKnownOnly: true,
    takesForm: true,
    group: 'Exports',
    says: 'Orders an export repeatedly. Relative times such as -1h count from each run, so that consecutive runs leave no gap.',
    parameters: DOWNLOAD_TABLES.schedule,
    context: { at: 'fleet' },
    requestHeaders: [CAPFLEET_DEVICE, IDEMPOTENCY_KEY],
    answers: [{ ...json(SCHEDULE, 'The schedule is created.'), status: 201, headers: [LOCATION] }],
    errors: [...ORDER_ERRORS, 'out-of-bounds'],
  },
  schedules: {
    method: 'GET',
    path: '/v1/schedules',
    scope: 'export:read',
    filtered: 'passing',
    others: 'own',
    group: 'Exports',
    says: "The user's schedules; callers with the scope audit:read get those of all users.",
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
    says: 'One schedule: for its user, and for callers with the scope audit:read.',
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
    changes: 'schedule',
    group: 'Exports',
    says: 'Ends a schedule. Exports that it has ordered stay.',
    parameters: [{}],
    answers: [json(SCHEDULE, 'The schedule as it was.')],
    errors: ['unknown-schedule', 'scheduler-unavailable', 'audit-unavailable', 'cross-site'],
  },
} as const satisfies Record<string, Endpoint>
