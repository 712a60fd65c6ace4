/**
 * The API of a device, endpoint by endpoint: what an appliance answers, and what the gateway repeats below
 * /devices/{device} and, in part, at its root. Each route table adds its own handlers.
 */
import type { ErrorCode } from '../base/error.ts'
import { COUNT_PARAMETERS } from '../query/download/count-query.ts'
import type { DownloadKind } from '../query/download/download-query.ts'
import { LINK_PARAMETERS } from '../query/download/gateway-options.ts'
import { legacyTables } from '../query/download/legacy-query.ts'
import { DOWNLOAD_TABLES } from '../query/download/parse-download-query.ts'
import { ENCODING_FILES } from '../query/download/query-values.ts'
import type { ParameterRows } from '../query/query-parameters.ts'
import { ACTIVITY } from './activity-answers.ts'
import {
  CAPTURE_DELETED,
  CAPTURE_LIST,
  CAPTURE_STARTED,
  CAPTURE_STATUS,
  CAPTURE_STOPPED,
  CAPTURE_UPLOADED,
  ESTIMATE,
  SCHEDULE,
  SPLIT_LIST,
} from './capture-answers.ts'
import {
  ACTIVITY_PARAMETERS,
  ACTIVITY_RANGE,
  DELETE_PARAMETERS,
  EVENT_PARAMETERS,
  LIST_PARAMETERS,
  SIZE_SPLIT_PARAMETERS,
  START_PARAMETERS,
  STOP_PARAMETERS,
  SYSMASTER_STATUS_PARAMETERS,
  TELEMETRY_PARAMETERS,
  TIME_SPLIT_PARAMETERS,
  UPLOAD_PARAMETERS,
} from './device-parameters.ts'
import { type Answer, type Endpoint, json } from './endpoint.ts'
import {
  CAPFLEET_CALLER,
  CAPFLEET_FORCED_FILTER,
  CAPFLEET_LIST_PARAMETERS,
  DOWNLOAD_HEADERS,
  DOWNLOAD_TRAILERS,
  LAST_EVENT_ID,
} from './headers.ts'
import { SEEN_PARAMETERS, SEEN_RANGE } from './seen-parameters.ts'
import {
  IO_STATISTICS,
  PORT_STATISTICS,
  STATS_SUMMARY,
  SYSTEM_STATUS,
  TIME_CURRENT,
  VERSION,
} from './status-answers.ts'

/** The answer to a download; the gateway's has more headers and trailers. */
export const DOWNLOAD_ANSWER: Answer = {
  says:
    'The packets as a PCAP or, with Format=pcapng, as pcapng, compressed if Compression says so. An incomplete download never looks complete: a download ' +
    'that fails is cut inside a packet, and the connection is reset. Without packets the body is a file without packets. ' +
    'A Range that begins after the first byte is rejected; any other Range is ignored.',
  bodies: Object.fromEntries(Object.values(ENCODING_FILES).map(({ mediaType }) => [mediaType, 'bytes'])),
  headers: DOWNLOAD_HEADERS,
  trailers: DOWNLOAD_TRAILERS,
}

const STORE_ERRORS: readonly ErrorCode[] = ['store-unavailable', 'store-corrupt']

/** Errors in the query of a download, detected before it takes a stream. */
const QUERY_ERRORS: readonly ErrorCode[] = [
  'bad-bpf',
  'bad-frame-filter',
  'bad-regex',
  'bad-timezone',
  'ambiguous-timezone',
  'unknown-capture',
  'aged-out',
  'mixed-link-type',
  'compiler-busy',
  ...STORE_ERRORS,
]

/** An endpoint that returns packets. */
export interface DownloadEndpoint extends Endpoint {
  readonly context: { readonly kind: DownloadKind }
}

/** All parameter rows of a download at this path of a device, by who reads them. */
export function downloadRows(
  path: string,
  kind: DownloadKind,
  at: keyof typeof DOWNLOAD_TABLES,
): readonly ParameterRows[] {
  const tables = path.startsWith('/pcap/') ? legacyTables(kind, at) : DOWNLOAD_TABLES[at]
  return at === 'device' ? tables : [...tables, LINK_PARAMETERS]
}

const READ = { method: 'GET', group: 'System', errors: [] } as const

function download(path: string, kind: DownloadKind, says: string): DownloadEndpoint {
  return {
    method: 'GET',
    path,
    scope: 'capture:download',
    filtered: 'passing',
    others: 'nothing',
    takesForm: true,
    group: 'Downloads',
    says,
    parameters: downloadRows(path, kind, 'device'),
    context: { kind },
    requestHeaders: [CAPFLEET_CALLER, CAPFLEET_FORCED_FILTER],
    answers: [DOWNLOAD_ANSWER],
    errors: ['range-unsupported', ...QUERY_ERRORS, 'download-slots-exhausted', 'draining'],
  }
}

export const DEVICE_API = {
  // Device operation and management.
  startCapture: {
    method: 'GET',
    path: '/sysmaster/capture_start',
    scope: 'capture:control',
    filtered: 'refused',
    others: 'nothing',
    changes: 'devices',
    group: 'Captures',
    says: 'Starts a capture. The answer does not wait for packets.',
    parameters: [START_PARAMETERS],
    answers: [json(CAPTURE_STARTED, 'The capture has started.')],
    errors: ['capture-running', 'capture-unavailable', 'store-full', ...STORE_ERRORS],
  },
  stopCapture: {
    method: 'GET',
    path: '/sysmaster/capture_stop',
    scope: 'capture:control',
    filtered: 'refused',
    others: 'nothing',
    changes: 'devices',
    group: 'Captures',
    says: 'Stops the running capture. A capture started by a schedule needs Until=next.',
    parameters: [STOP_PARAMETERS],
    answers: [json(CAPTURE_STOPPED, 'The capture has stopped, and its packets are on disk.')],
    errors: ['capture-not-running', 'capture-scheduled', ...STORE_ERRORS],
  },
  captureStatus: {
    ...READ,
    group: 'Captures',
    path: '/sysmaster/capture_status',
    scope: 'device:read',
    filtered: 'refused',
    others: 'nothing',
    says: 'The state of the capture: its name, rates, packets, drops by cause, and the time up to which packets can be downloaded.',
    parameters: [{}],
    answers: [json(CAPTURE_STATUS, 'The state of the capture.')],
    errors: ['store-unavailable'],
  },
  sysmasterStatus: {
    ...READ,
    group: 'Captures',
    path: '/sysmaster/status',
    scope: 'device:read',
    filtered: 'refused',
    others: 'nothing',
    says: 'The capture and the ports as lines of the form "key,<padding>value".',
    parameters: [SYSMASTER_STATUS_PARAMETERS],
    answers: [
      {
        says: 'One line for each value; without a recorder the values are 0.',
        bodies: { 'text/csv': 'text' },
      },
    ],
  },
  statsSummary: {
    ...READ,
    path: '/sysmaster/stats_summary',
    scope: 'device:read',
    filtered: 'refused',
    others: 'nothing',
    says: 'The machine in one flat object: uptime, packets, disks, links and clocks.',
    parameters: [{}],
    answers: [json(STATS_SUMMARY, 'The machine.')],
  },
  deleteCapture: {
    method: 'GET',
    path: '/pcap/del',
    scope: 'capture:delete',
    filtered: 'refused',
    others: 'nothing',
    changes: 'devices',
    group: 'Captures',
    says: 'Deletes a capture.',
    parameters: [DELETE_PARAMETERS],
    answers: [json(CAPTURE_DELETED, 'The capture is gone.')],
    errors: ['unknown-capture', 'capture-active', 'capture-in-use', ...STORE_ERRORS],
  },
  uploadCapture: {
    method: 'POST',
    path: '/v1/captures',
    scope: 'capture:upload',
    filtered: 'refused',
    others: 'nothing',
    changes: 'devices',
    takesFile:
      'A capture file: PCAP or pcapng, also compressed by gzip, zstd, xz, lz4 or bzip2. Its format is detected, whatever ' +
      'the Content-Type.',
    takesKnownOnly: true,
    group: 'Captures',
    says:
      'Uploads a capture file, which becomes a capture. The answer comes when it is on disk; a failed or interrupted upload ' +
      'leaves nothing. With "Expect: 100-continue", everything that can be checked before is checked before the file is sent.',
    parameters: [UPLOAD_PARAMETERS],
    requestHeaders: [CAPFLEET_CALLER],
    answers: [{ ...json(CAPTURE_UPLOADED, 'The capture is stored.'), status: 201 }],
    errors: [
      'bad-capture-file',
      'upload-too-large',
      'capture-exists',
      'client-timeout',
      'store-full',
      'not-implemented',
      'draining',
      ...STORE_ERRORS,
    ],
  },

  // The system.
  time: {
    ...READ,
    path: '/api/v1/system/time_current',
    scope: 'system',
    filtered: 'nothing',
    others: 'nothing',
    says: 'The time of the clock that timestamps packets, in epoch nanoseconds.',
    parameters: [{}],
    answers: [
      {
        says: '19 digits and a newline; JSON for clients that ask for it with Accept.',
        bodies: { 'text/plain': 'text', 'application/json': TIME_CURRENT },
      },
    ],
  },
  version: {
    ...READ,
    path: '/api/v1/system/version',
    scope: 'system',
    filtered: 'nothing',
    others: 'nothing',
    says: 'The version and the model.',
    parameters: [{}],
    answers: [json(VERSION, 'The version and the model.')],
  },
  portStatistics: {
    ...READ,
    path: '/api/v1/system/port_stats',
    scope: 'system',
    filtered: 'refused',
    others: 'nothing',
    says: 'Packets of each capture port by size, and whether they were stored, filtered or dropped.',
    parameters: [{}],
    answers: [json(PORT_STATISTICS, 'The counts since the start of the running capture.')],
  },
  ioStatistics: {
    ...READ,
    path: '/api/v1/system/io_stats',
    scope: 'system',
    filtered: 'refused',
    others: 'nothing',
    says: 'The load of the disks.',
    parameters: [{}],
    answers: [json(IO_STATISTICS, 'The load during the last seconds.')],
  },
  systemStatus: {
    ...READ,
    path: '/api/v1/system/status',
    scope: 'system',
    filtered: 'refused',
    others: 'emptied',
    says:
      'The machine in groups: sensors, links, disks, capture, clocks and running downloads (cat_N). ' +
      'Without credentials the name and the message of the capture are also empty.',
    parameters: [{}],
    answers: [json(SYSTEM_STATUS, 'The groups.')],
  },
  events: {
    ...READ,
    path: '/api/v1/system/events',
    scope: 'device:read',
    filtered: 'refused',
    others: 'emptied',
    says: 'Events on the device, as server-sent events, until the client disconnects.',
    parameters: [EVENT_PARAMETERS],
    requestHeaders: [LAST_EVENT_ID, CAPFLEET_CALLER],
    answers: [
      {
        says: 'Each event has a number (id), a kind (event) and facts as JSON (data). "gap": earlier events are lost.',
        bodies: { 'text/event-stream': 'text' },
      },
    ],
    errors: ['event-streams-exhausted', 'draining'],
  },
  telemetry: {
    ...READ,
    path: '/api/v1/system/telemetry',
    scope: 'device:read',
    filtered: 'refused',
    others: 'emptied',
    says: 'The groups of the system status, repeated at an interval.',
    parameters: [TELEMETRY_PARAMETERS],
    requestHeaders: [CAPFLEET_CALLER],
    answers: [{ says: 'One line of JSON for each group.', bodies: { 'application/x-ndjson': 'text' } }],
    errors: ['event-streams-exhausted', 'draining'],
  },
  schedule: {
    ...READ,
    group: 'Captures',
    path: '/api/v1/capture/schedule',
    scope: 'device:read',
    filtered: 'nothing',
    others: 'nothing',
    says: 'Scheduled captures, each with its state and its next start and stop.',
    parameters: [{}],
    answers: [json(SCHEDULE, 'The entries of the schedule.')],
  },

  // Downloads.
  single: download('/api/v1/pcap/single', 'single', 'A whole capture.'),
  timeRange: download(
    '/api/v1/pcap/timerange',
    'timerange',
    'The packets of a time range, from all captures that hold packets of it.',
  ),
  splitTime: download('/api/v1/pcap/splittime', 'splittime', 'The packets of a capture between two times.'),
  estimate: {
    method: 'GET',
    path: '/api/v1/pcap/estimate',
    takesForm: true,
    scope: 'capture:download',
    filtered: 'refused',
    others: 'nothing',
    group: 'Downloads',
    says:
      'What a download with this query would deliver, and whether its filters compile. Takes no stream. ' +
      'With StreamName, the estimate is for that capture, or for a part of it with Start and Stop; otherwise it is for a time range.',
    parameters: DOWNLOAD_TABLES.device,
    requestHeaders: [CAPFLEET_CALLER],
    answers: [json(ESTIMATE, 'Packets and bytes.')],
    errors: QUERY_ERRORS,
  },

  count: {
    method: 'GET',
    path: '/api/v1/pcap/count',
    takesForm: true,
    scope: 'capture:download',
    filtered: 'passing',
    others: 'nothing',
    group: 'Downloads',
    says:
      'What a download with this query would deliver, counted by reading its packets, which are not sent: exact, also with filters. Takes a stream, like a download. ' +
      'StreamName, Start and Stop are as in an estimate. Compression does not matter. An answer without a last line with "end" is not whole.',
    parameters: [...DOWNLOAD_TABLES.device, COUNT_PARAMETERS],
    requestHeaders: [CAPFLEET_CALLER, CAPFLEET_FORCED_FILTER],
    answers: [
      {
        says:
          'Lines of JSON: while it counts, about one a second with the progress, and one with "end" at the end: ' +
          '`{"end":true,"packets":"1204","bytes":"140356","complete":true,"checkedBytes":"...","rangeBytes":"..."}`.',
        bodies: { 'application/x-ndjson': 'text' },
      },
    ],
    errors: [...QUERY_ERRORS, 'download-slots-exhausted', 'draining'],
  },

  activity: {
    method: 'GET',
    path: '/api/v1/activity',
    scope: 'device:read',
    filtered: 'refused',
    others: 'nothing',
    group: 'Lists',
    says:
      'The number of packets and bytes in each part of a time range, and where nothing was recorded, where packets ' +
      'were dropped, and where they have since been removed. No packet is read.',
    parameters: [ACTIVITY_RANGE, ACTIVITY_PARAMETERS],
    answers: [json(ACTIVITY, 'The parts of the range.')],
    errors: ['bad-timezone', 'ambiguous-timezone', ...STORE_ERRORS],
  },

  seen: {
    method: 'GET',
    path: '/api/v1/seen',
    takesForm: true,
    takesText: SEEN_PARAMETERS.addresses,
    scope: 'capture:download',
    filtered: 'refused',
    others: 'nothing',
    group: 'Lists',
    says:
      'When addresses and networks were seen, in any capture. Without Verify no packet is read, and an address that was not seen may rarely be ' +
      'reported; one that was seen is never missing. An answer without a last line with "end" is not whole.',
    parameters: [SEEN_RANGE, SEEN_PARAMETERS],
    requestHeaders: [CAPFLEET_CALLER, CAPFLEET_FORCED_FILTER],
    answers: [
      {
        says:
          'One line of JSON for each address that was seen or may have been, with Verify lines with the progress before, and one with "end" after: ' +
          '`{"address":"203.0.113.9","spans":[{"fromNs":"...","toNs":"..."}]}`.',
        bodies: { 'application/x-ndjson': 'text' },
      },
    ],
    errors: [
      'bad-bpf',
      'bad-timezone',
      'ambiguous-timezone',
      'aged-out',
      'compiler-busy',
      ...STORE_ERRORS,
      'download-slots-exhausted',
      'draining',
    ],
  },

  // Lists and the old paths of downloads.
  captures: {
    method: 'GET',
    path: '/stream/list',
    scope: 'device:read',
    filtered: 'refused',
    others: 'nothing',
    group: 'Lists',
    says: 'The captures, newest first.',
    parameters: [LIST_PARAMETERS],
    answers: [
      {
        says: 'The captures.',
        bodies: { 'application/json': CAPTURE_LIST, 'text/csv': 'text' },
        headers: [CAPFLEET_LIST_PARAMETERS],
      },
    ],
    errors: ['unknown-capture', ...STORE_ERRORS],
  },
  sizeSplits: {
    method: 'GET',
    path: '/stream/ssize',
    scope: 'device:read',
    filtered: 'refused',
    others: 'nothing',
    group: 'Lists',
    says: 'The parts of a capture by size: half-open, with exact counts, together the whole capture.',
    parameters: [SIZE_SPLIT_PARAMETERS],
    answers: [json(SPLIT_LIST, 'The parts; those without packets are left out.')],
    errors: ['unknown-capture', 'aged-out', ...STORE_ERRORS],
  },
  timeSplits: {
    method: 'GET',
    path: '/stream/stime',
    scope: 'device:read',
    filtered: 'refused',
    others: 'nothing',
    group: 'Lists',
    says: 'The parts of a capture by time: half-open, with exact counts, together the whole capture.',
    parameters: [TIME_SPLIT_PARAMETERS],
    answers: [json(SPLIT_LIST, 'The parts; those without packets are left out.')],
    errors: ['unknown-capture', 'aged-out', ...STORE_ERRORS],
  },
  legacySingle: download('/pcap/single', 'single', 'A whole capture, by its old path.'),
  legacySplitTime: download(
    '/pcap/splittime',
    'splittime',
    'The packets of a capture between two times, by its old path.',
  ),
  legacyTimeRange: download(
    '/pcap/timerange',
    'timerange',
    'The packets of a time range that covers at most two captures, by its old path. TSMode is the unit of its times.',
  ),
} as const satisfies Record<string, Endpoint>

/** Whether packets are downloaded there: at the root or below /devices/{device} of a gateway. */
export function isDownloadPath(path: string): boolean {
  const ofDevice = path.replace(/^\/devices\/[^/]+/, '')
  return Object.values<Endpoint>(DEVICE_API).some(
    (endpoint) => endpoint.path === ofDevice && endpoint.context?.kind !== undefined,
  )
}
