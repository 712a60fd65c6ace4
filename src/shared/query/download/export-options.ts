/** The options of an export besides its query: which files it produces, where they go, and when it is repeated. */
import {
  choiceType,
  durationType,
  integerType,
  lineType,
  NS_PER_DAY,
  numberType,
  patternType,
  TEXT,
} from '../parameter-types.ts'
import type { ParameterRows, ParameterValues } from '../query-parameters.ts'
import { zoneType } from './query-range.ts'

const PART_BYTES_MIN = 1_048_576n
const PART_BYTES_MAX = 2n ** 43n
const LIST_MAX = 1_000

/** The parameters that an order of an export has in addition to those of a download. */
export const EXPORT_PARAMETERS = {
  /** Length of the time range in a file. */
  partTimeNs: {
    name: 'PartTime',
    says: 'Splits the export into files that cover this much time each, counted from its start: 15m, 1h, 1d.',
    type: durationType(1n, 366n * NS_PER_DAY),
    defaultSays: 'one file',
    example: '1h',
  },
  /** Largest file before compression. */
  partBytes: {
    name: 'PartBytes',
    says: 'Splits the export into files of at most this many bytes before compression, each with its own header.',
    type: integerType(PART_BYTES_MIN, PART_BYTES_MAX, 'bytes'),
    defaultSays: 'one file',
  },
  /** Name of a configured target for files. */
  target: {
    name: 'Target',
    says: 'Where the files go: the name of an entry of exports.targets.',
    type: patternType(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be the name of a target'),
    defaultSays: 'the first target',
  },
  onMissing: {
    name: 'OnMissing',
    says:
      'What happens if a device cannot be read for a long time: fail ends the export without a file, ' +
      'partial leaves the device out and lists the gap in the manifest, so that fill can fetch it later.',
    type: choiceType(['fail', 'partial']),
    default: 'fail',
  },
  reason: {
    name: 'Reason',
    says: 'The reason for the export; kept with it and in its manifest.',
    type: lineType(),
    defaultSays: 'none',
  },
} as const satisfies ParameterRows

export type ExportOptions = ParameterValues<typeof EXPORT_PARAMETERS>

/** The parameters of a schedule in addition to those of its exports. */
export const SCHEDULE_PARAMETERS = {
  cron: {
    name: 'Cron',
    says:
      'When to order the export: minute, hour, day of month, month, day of week. Relative times in the query count from then. ' +
      'If the clock is put forward over a scheduled time, the run is delayed by the same amount. If it is put back, the repeated ' +
      'hour has hourly runs twice, and runs at a fixed hour once.',
    type: patternType(
      /^\S{1,100}( \S{1,100}){4}$/,
      'must have five fields: minute hour day-of-month month day-of-week',
    ),
    required: true,
    example: '5 * * * *',
  },
  cronZone: {
    name: 'CronZone',
    says:
      'The time zone of Cron: an IANA name, or only its city. A day there may have 25 hours, of which TSBegin=-1d ' +
      'misses one; in UTC every day has 24.',
    type: zoneType(),
    defaultSays: "the gateway's timeZone",
  },
  /** What happens to runs that were due while no worker was running. */
  missed: {
    name: 'Missed',
    says: 'How to handle runs that were due while no worker was running: makeup orders all of them, skip only the last one.',
    type: choiceType(['makeup', 'skip']),
    default: 'makeup',
  },
} as const satisfies ParameterRows

export type ScheduleOptions = ParameterValues<typeof SCHEDULE_PARAMETERS>

/** The parameters of paged lists. */
export const EXPORT_LIST_PARAMETERS = {
  limit: {
    name: 'Limit',
    says: 'Maximum number to list.',
    type: numberType(1, LIST_MAX, 'exports'),
    default: 100,
  },
  after: {
    name: 'After',
    says: 'Continues after a page: its `next`.',
    type: TEXT,
    defaultSays: 'the first page',
  },
  state: {
    name: 'State',
    says: 'Lists only exports in this state.',
    type: choiceType(['queued', 'running', 'paused', 'complete', 'partial', 'failed', 'cancelled']),
    defaultSays: 'all',
  },
} as const satisfies ParameterRows

/** The parameters of the file of an export. */
export const EXPORT_FILE_PARAMETERS = {
  part: {
    name: 'Part',
    says: 'The number of the file within the export, starting at 1.',
    type: numberType(1, 100_000),
    default: 1,
  },
} as const satisfies ParameterRows
