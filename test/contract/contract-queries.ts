/** Requests that many rows make. */
import { ALPHA, SECOND_NS, START_NS } from './contract-captures.ts'

export const SINGLE = `/api/v1/pcap/single?StreamName=${ALPHA}`
export const RANGE_PATH = '/api/v1/pcap/timerange'

/** Two seconds in which alpha and gamma have packets; half-open. */
export const BEGIN_NS = START_NS + SECOND_NS
export const END_NS = START_NS + 3n * SECOND_NS
export const IN_RANGE = { beginNs: BEGIN_NS, endNs: END_NS }
export const NANOS = `TSBegin=${BEGIN_NS}&TSEnd=${END_NS}`
export const SECONDS = `TSBegin=${BEGIN_NS / SECOND_NS}&TSEnd=${END_NS / SECOND_NS}`
export const RANGE = `${RANGE_PATH}?${NANOS}`
export const SPLIT_ENDS = `StreamName=${ALPHA}&Start=${BEGIN_NS}&Stop=${END_NS}`
export const SPLIT = `/api/v1/pcap/splittime?${SPLIT_ENDS}`

/** The same two seconds in local time in UTC, Tokyo (the zone of east) and New York (the gateway's). */
export const LOCAL = {
  utc: 'TSBegin=20260921_141321&TSEnd=20260921_141323',
  tokyo: 'TSBegin=20260921_231321&TSEnd=20260921_231323',
  newYork: 'TSBegin=20260921_101321&TSEnd=20260921_101323',
  singapore: 'TSBegin=20260921_221321&TSEnd=20260921_221323',
} as const
export const LOCAL_UNIT = 'TSUnit=YYYYMMDD_HHMMSS'

export const START_CAPTURE = '/sysmaster/capture_start'
export const STOP_CAPTURE = '/sysmaster/capture_stop'
export const CAPTURE_STATUS = '/sysmaster/capture_status'

/** Every path of a device in the two documents that only reads and that ends. */
export const READ_PATHS: readonly string[] = [
  CAPTURE_STATUS,
  '/sysmaster/status',
  '/sysmaster/stats_summary',
  ...['time_current', 'version', 'port_stats', 'io_stats', 'status'].map((name) => `/api/v1/system/${name}`),
  ...['single', 'timerange', 'splittime'].flatMap((name) => [`/api/v1/pcap/${name}`, `/pcap/${name}`]),
  ...['list', 'ssize', 'stime'].map((name) => `/stream/${name}`),
  '/api/v1/capture/schedule',
]
