/** A capture as a device lists it, and the order in which captures are listed. */
import { epochNs } from '../../../shared/query/time/query-time.ts'
import { deviceProtocol } from '../../device/device-failure.ts'
import { parseExactly } from '../../device/device-json.ts'

/** One entry of a device's /stream/list. */
export interface CaptureEntry {
  readonly name: string
  /** 0 if the device does not report it. */
  readonly startNs: bigint
  /** Undefined if the device does not report it. */
  readonly endNs: bigint | undefined
  /** The entry as the device sent it: a JSON object, limited in size and depth. */
  readonly json: string
}

/** Parses the JSON text of an entry. Fails with device-protocol. */
export function readCaptureEntry(device: string, json: string): CaptureEntry {
  const { StreamName, Path, StartTS, EndTS } = parseEntry(device, json)
  const name = StreamName ?? Path
  if (typeof name !== 'string' || name.length > NAME_LENGTH_MAX)
    throw deviceProtocol(device, 'sent a /stream/list with an entry without a name')
  if (typeof StartTS !== 'number' && typeof EndTS !== 'number')
    return { name, startNs: nanosOf(StartTS) ?? 0n, endNs: nanosOf(EndTS), json }
  return readCaptureEntry(device, withTextTimes(json))
}

/** The order of captures of one device: newest first; captures that began together are sorted by name. */
export function newestFirst(a: CaptureEntry, b: CaptureEntry): number {
  if (a.startNs !== b.startNs) return a.startNs < b.startNs ? 1 : -1
  if (a.name === b.name) return 0
  return a.name < b.name ? -1 : 1
}

/** Whether the capture was started under the name `base`. */
export function isStartOf(base: string, captureName: string): boolean {
  return captureName.startsWith(base) && START_SUFFIX.test(captureName.slice(base.length))
}

/** The part of a full name after the base name: date, time, and a number if there are several. */
const START_SUFFIX = /^_\d{8}_\d{4}(_\d+)*$/

const NAME_LENGTH_MAX = 1_024

function nanosOf(text: unknown): bigint | undefined {
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? BigInt(text) : undefined
}

/**
 * Third-party devices write times as numbers, also in other units, which their number of digits reveals. The API uses
 * texts of nanoseconds.
 */
function withTextTimes(json: string): string {
  const entry = parseExactly(json) as Record<string, unknown>
  const times = Object.entries(NUMBERS).flatMap(([name, pattern]) => {
    if (typeof entry[name] === 'string') return []
    const [, digits = ''] = pattern.exec(json) ?? []
    const ns = digits === '' ? 0n : epochNs(digits)
    return [[name, ns === 0n ? null : String(ns)]]
  })
  return JSON.stringify({ ...entry, ...Object.fromEntries(times) })
}

/** Only the integer part of a number is read. */
const NUMBERS = {
  StartTS: /"StartTS"\s{0,9}:\s{0,9}(\d{1,19})(?![\deE])/,
  EndTS: /"EndTS"\s{0,9}:\s{0,9}(\d{1,19})(?![\deE])/,
} as const

function parseEntry(device: string, json: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw deviceProtocol(device, 'sent a /stream/list with malformed JSON', cause)
  }
}
