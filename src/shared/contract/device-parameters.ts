/** The parameter rows of a device's lists, controls and reports; those of downloads are in src/shared/query. */
import { BASE_NAME, BASE_NAME_RULE, CAPTURE_NAME, CAPTURE_NAME_RULE } from '../query/capture-name-rule.ts'
import { RANGE_PARAMETERS } from '../query/download/query-range.ts'
import {
  CAPTURE_NAME_TYPE,
  choiceType,
  FILE_NAME_TYPE,
  integerType,
  numberType,
  patternType,
  SWITCH,
  TEXT,
  wordType,
} from '../query/parameter-types.ts'
import type { ParameterRows } from '../query/query-parameters.ts'
import { SIZE_VIEWS, type SizeView, TIME_VIEWS, type TimeView } from '../query/split-views.ts'
import { listTimeRows } from '../query/time/list-times.ts'
import { TIME_LIMIT_NS } from '../query/time/query-time.ts'

/** /stream/list, of a device and of the fleet. */
export const LIST_PARAMETERS = {
  captureName: {
    name: 'StreamName',
    says: 'Lists the capture with this full name. If a device has none, lists its captures with this base name.',
    type: CAPTURE_NAME_TYPE,
  },
  limit: {
    name: 'Limit',
    says: 'Maximum number of captures to list.',
    type: numberType(1, 1_000_000, 'captures'),
    defaultSays: 'all',
  },
  after: {
    name: 'After',
    says:
      'Continues after a page. At a device, this is the name of the last capture of that page; at the root of the gateway, ' +
      'it is `Next` of the answer.',
    type: TEXT,
  },
  ...listTimeRows({
    from: 'Lists only captures that have packets at or after this time.',
    to: 'Lists only captures that begin before this time.',
  }),
  format: {
    name: 'Format',
    says: 'The format of the list.',
    type: choiceType(['json', 'csv']),
    default: 'json',
  },
} as const satisfies ParameterRows

/** Above this a list of splits is rejected, or returned in pages with Limit. */
export const SPLITS_MAX = 100_000

const SPLIT_PARAMETERS = {
  captureName: {
    name: 'StreamName',
    says: 'The capture: its full name, or a base name, which means the newest capture of that name.',
    type: CAPTURE_NAME_TYPE,
    required: true,
  },
  limit: {
    name: 'Limit',
    says: 'Maximum number of splits to list.',
    type: numberType(1, SPLITS_MAX, 'splits'),
    defaultSays: `all; more than ${SPLITS_MAX} are rejected`,
  },
  fromNs: {
    name: 'After',
    says: 'Continues after a page: `Next` of its answer.',
    type: integerType(0n, TIME_LIMIT_NS, 'epoch nanoseconds'),
    default: 0n,
  },
} as const satisfies ParameterRows

/** /stream/ssize */
export const SIZE_SPLIT_PARAMETERS = {
  ...SPLIT_PARAMETERS,
  view: {
    name: 'StreamView',
    says: 'The size of a split, in decimal units.',
    type: choiceType(Object.keys(SIZE_VIEWS) as SizeView[]),
    default: 'split_1GB',
  },
} as const satisfies ParameterRows

/** /stream/stime */
export const TIME_SPLIT_PARAMETERS = {
  ...SPLIT_PARAMETERS,
  view: {
    name: 'StreamView',
    says: 'The duration of a split. Splits begin and end at multiples of it in UTC.',
    type: choiceType(Object.keys(TIME_VIEWS) as TimeView[]),
    default: 'split_1hour',
  },
} as const satisfies ParameterRows

const { start: _start, stop: _stop, ...TIME_RANGE } = RANGE_PARAMETERS
/** The range of /api/v1/activity. */
export const ACTIVITY_RANGE = TIME_RANGE

export const BUCKETS_MAX = 2_000

/** /api/v1/activity, and /v1/activity over the fleet. */
export const ACTIVITY_PARAMETERS = {
  buckets: {
    name: 'Buckets',
    says: 'The number of equal parts of the range; fewer if the range has fewer nanoseconds.',
    type: numberType(1, BUCKETS_MAX, 'parts'),
    default: 300,
  },
} as const satisfies ParameterRows

/** /sysmaster/capture_start */
export const START_PARAMETERS = {
  baseName: {
    name: 'StreamName',
    says: 'The base name of the capture. Its full name is this name followed by the start time.',
    // An unset variable of a script must not start a capture under another name.
    type: { ...patternType(BASE_NAME, `must be ${BASE_NAME_RULE}`), readsEmpty: true },
    defaultSays: 'capture.defaultName of the device',
  },
} as const satisfies ParameterRows

/** /sysmaster/capture_stop */
export const STOP_PARAMETERS = {
  stopsScheduled: {
    name: 'Until',
    says: '"next" also stops a capture started by a schedule, until its next scheduled start.',
    type: wordType('next'),
    default: false,
  },
} as const satisfies ParameterRows

/** /pcap/del */
export const DELETE_PARAMETERS = {
  captureName: {
    name: 'StreamName',
    says: 'The full name of the capture.',
    type: CAPTURE_NAME_TYPE,
    required: true,
  },
  isForced: {
    name: 'Force',
    says: 'Deletes the capture even if it is being downloaded, and cuts those downloads.',
    type: SWITCH,
    default: false,
  },
} as const satisfies ParameterRows

/** /v1/captures */
export const UPLOAD_PARAMETERS = {
  captureName: {
    name: 'StreamName',
    says: 'The full name of the capture that the file becomes. It must not be in use.',
    type: patternType(CAPTURE_NAME, CAPTURE_NAME_RULE),
    required: true,
  },
  fileName: {
    name: 'FileName',
    says: 'The name of the file, without a folder: it is recorded with the capture, and used in messages.',
    type: FILE_NAME_TYPE,
    default: 'upload',
  },
} as const satisfies ParameterRows

/** /sysmaster/status */
export const SYSMASTER_STATUS_PARAMETERS = {
  hasHeader: {
    name: 'Header',
    says: 'Adds a header line with the names of the columns.',
    type: SWITCH,
    default: false,
  },
} as const satisfies ParameterRows

/** /api/v1/system/events */
export const EVENT_PARAMETERS = {
  lastEventId: {
    name: 'LastEventID',
    says:
      'The number of the last event that the client received; 0 requests all events that are kept. Numbers are the epoch milliseconds at which ' +
      'events were written, so any time is valid. The header Last-Event-ID takes precedence.',
    type: numberType(0, Number.MAX_SAFE_INTEGER),
    defaultSays: 'only new events',
  },
  hasTelemetry: {
    name: 'Telemetry',
    says: 'Adds the groups of the system status, every second unless the device is configured otherwise.',
    type: SWITCH,
    default: false,
  },
} as const satisfies ParameterRows

/** /api/v1/system/telemetry */
export const TELEMETRY_PARAMETERS = {
  count: {
    name: 'Count',
    says: 'How many times the groups are sent.',
    type: numberType(1, 1_000_000, 'times'),
    defaultSays: 'until the client disconnects',
  },
  // A gateway would take a longer silence for a lost device.
  intervalS: {
    name: 'Interval',
    says: 'The time between two repetitions.',
    type: numberType(1, 30, 'seconds'),
    defaultSays: 'telemetry.intervalMs of the device',
  },
} as const satisfies ParameterRows
