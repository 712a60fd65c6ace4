/** The questions of a probe: is the device there, what is its time, how many readers, its oldest packet. */
import { performance } from 'node:perf_hooks'
import { CapfleetError } from '../../../shared/base/error.ts'
import { ANSWER_BYTES_MAX, type DeviceClient, type TimeLimit } from '../../device/device-client.ts'
import { deviceProtocol } from '../../device/device-failure.ts'
import { parseDeviceJson } from '../../device/device-json.ts'
import { type DeviceKind, kindOfAnswer } from '../../device/device-kind.ts'
import { plainText } from '../../device/device-refusal.ts'

/** The device's clock minus ours. The true value lies within `errorNs` on either side. */
export interface ClockOffset {
  readonly offsetNs: bigint
  readonly errorNs: bigint
}

export interface PtpState {
  readonly sync: boolean
  /** Offset to the PTP grandmaster, as the device reports it. */
  readonly offsetNs: number | undefined
}

/** What `status` reported; undefined where the device reported nothing or a value of the wrong type. */
export interface DeviceStatus {
  readonly serial: string | undefined
  readonly readers: number | undefined
  readonly ptp: PtpState | undefined
  readonly capture: CaptureFigures | undefined
  /** Size of the file system that holds the store. */
  readonly storeBytes: number | undefined
  readonly storeFreeBytes: number | undefined
}

/** The running capture, or the last one; members are undefined if the device does not report them. */
export interface CaptureFigures {
  /** "running", "idle" and so on. */
  readonly state: string | undefined
  readonly name: string | undefined
  readonly gbps: number | undefined
  /** Millions of packets per second. */
  readonly mpps: number | undefined
  /** Packets that it has lost. */
  readonly drops: number | undefined
}

export const STATUS_PATH = '/api/v1/system/status'

const TEXT_LENGTH_MAX = 128

export const CLOCK_PATH = '/api/v1/system/time_current'
export const VERSION_PATH = '/api/v1/system/version'
export const OLDEST_PATH = '/sysmaster/stats_summary'
const CAPTURE_PATH = '/sysmaster/capture_status'

/** A path that a device lacks, or answers differently than the API specifies. */
export interface LackingPath {
  readonly path: string
  readonly detail: string
}

export interface DeviceVersion {
  readonly version: string | undefined
  readonly kind: DeviceKind
  /** Why the version is unknown. */
  readonly lack: LackingPath | undefined
}

/**
 * Requests the version, as a sign of life. A third-party device without a version also counts as alive if it answers
 * another request of the API. Fails like DeviceClient.getText, or with device-protocol if the peer is not an appliance.
 */
export async function probeVersion(client: DeviceClient, limit: TimeLimit): Promise<DeviceVersion> {
  const { name } = client.device
  let headers: Readonly<Record<string, string>> = {}
  const onHeaders = (told: Readonly<Record<string, string>>) => {
    headers = told
  }
  const options = { ...limit, onHeaders, bytesMax: ANSWER_BYTES_MAX.version }
  const text = await client.getText(VERSION_PATH, options).catch(missingPath)
  const answer = typeof text === 'string' ? versionOf(name, text) : text
  const kind = kindOfAnswer(headers)
  if (!(answer instanceof CapfleetError)) return { version: answer.version, kind, lack: undefined }
  if (kind === 'capfleet') throw answer
  const lack = { path: VERSION_PATH, detail: answer.message }
  return { version: undefined, kind: await probeLife(client, answer, limit), lack }
}

function versionOf(device: string, text: string): { readonly version: string | undefined } | CapfleetError {
  try {
    const { version } = membersOf(parseDeviceJson(device, text, { path: VERSION_PATH }))
    return { version: plainText(version, TEXT_LENGTH_MAX) }
  } catch (error) {
    if (error instanceof CapfleetError) return error
    throw error
  }
}

/**
 * The kind of a device without a version: one with the paths of the API, or one without those below /api/v1/. Fails
 * with device-protocol if it is neither.
 */
async function probeLife(
  client: DeviceClient,
  cause: CapfleetError,
  limit: TimeLimit,
): Promise<'api' | 'legacy'> {
  const answers = async (path: string, form: RegExp) => {
    const text = await client
      .getText(path, { ...limit, bytesMax: ANSWER_BYTES_MAX.status })
      .catch(missingPath)
    return typeof text === 'string' && form.test(text)
  }
  if (await answers(CLOCK_PATH, /\d{10}/)) return 'api'
  // JSON, or the table or text of some makers; an HTML page could come from anything.
  if (await answers(CAPTURE_PATH, /^\s*[^\s<]/)) return 'legacy'
  const advice = `it has neither ${CLOCK_PATH} nor ${CAPTURE_PATH}: check that its url is the address of an appliance`
  throw new CapfleetError(cause.code, `${cause.message}, and ${advice}`, { ...cause.details, cause })
}

/** The device's status. A device without this path reports nothing, which is not a failure. */
export async function probeStatus(client: DeviceClient, limit: TimeLimit): Promise<DeviceStatus> {
  return (await probeStatusOrLack(client, limit)).status
}

export interface ProbedStatus {
  readonly status: DeviceStatus
  /** Why it reports nothing. */
  readonly lack: LackingPath | undefined
}

/** The same, with the reason if the device does not have this path. */
export async function probeStatusOrLack(client: DeviceClient, limit: TimeLimit): Promise<ProbedStatus> {
  const answer = await askStatus(client, STATUS_PATH, limit).catch(missingPath)
  if (!(answer instanceof CapfleetError)) return { status: readStatus(answer), lack: undefined }
  return { status: readStatus({}), lack: { path: STATUS_PATH, detail: answer.message } }
}

function readStatus(answer: unknown): DeviceStatus {
  const groups = membersOf(answer)
  const { cat, ptp } = groups
  const { GMSync: sync, GMOffset: offsetNs } = membersOf(ptp)
  const freeGb = numberOf(readingsOf(groups.disk).FreeGB_Store0)
  const other = readingsOf(groups.other)
  const serial = plainText(other.SerialNo, TEXT_LENGTH_MAX)
  return {
    serial: serial === '' ? undefined : serial,
    readers: countOf(membersOf(cat).cat_EnableCnt),
    ptp:
      typeof sync === 'boolean'
        ? { sync, offsetNs: typeof offsetNs === 'number' ? offsetNs : undefined }
        : undefined,
    capture: captureOf(groups.capture),
    storeBytes: countOf(other.StoreSize),
    storeFreeBytes: freeGb === undefined ? undefined : Math.round(freeGb * BYTES_PER_GB),
  }
}

const BYTES_PER_GB = 1e9

function captureOf(group: unknown): CaptureFigures | undefined {
  if (group === undefined) return undefined
  const readings = readingsOf(group)
  return {
    state: plainText(readings.CaptureState, TEXT_LENGTH_MAX),
    name: plainText(readings.CaptureName, TEXT_LENGTH_MAX),
    gbps: numberOf(readings.CaptureRateGbps),
    mpps: numberOf(readings.CaptureRateMpps),
    drops: countOf(readings.CaptureDrop),
  }
}

/** The members of a group except those that are not readings. */
function readingsOf(group: unknown): Readonly<Record<string, unknown>> {
  const { unavailable, ...members } = membersOf(group)
  if (!Array.isArray(unavailable)) return members
  return Object.fromEntries(Object.entries(members).filter(([name]) => !unavailable.includes(name)))
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
}

function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** Time of the oldest packet that the device still holds, or undefined if it does not report it. */
export async function probeOldestPacket(client: DeviceClient, limit: TimeLimit): Promise<bigint | undefined> {
  const { packets_oldest_ts: text } = membersOf(await askStatus(client, OLDEST_PATH, limit))
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? BigInt(text) : undefined
}

/** Our wall clock has a resolution of one millisecond: the true time is up to this much later. */
const TICK_NS = 1_000_000n

/** The device's clock, within the time of one question: the device read it between question and answer. */
export async function probeClock(client: DeviceClient, limit: TimeLimit): Promise<ClockOffset> {
  // In this order: a process that is suspended between the two makes the bound wider, not wrong.
  const askedMs = performance.now()
  const askedNs = BigInt(Date.now()) * 1_000_000n
  const options = { ...limit, bytesMax: ANSWER_BYTES_MAX.clock }
  const text = await client.getText(CLOCK_PATH, options)
  const roundTripNs = BigInt(Math.ceil((performance.now() - askedMs) * 1_000_000))
  const digits = /^(\d{19})\n?$/.exec(text)?.[1]
  if (digits === undefined) {
    throw deviceProtocol(client.device.name, `answered ${CLOCK_PATH} with something other than 19 digits`)
  }
  const errorNs = (roundTripNs + TICK_NS) / 2n
  return { offsetNs: BigInt(digits) - (askedNs + errorNs), errorNs }
}

function askStatus(client: DeviceClient, target: string, limit: TimeLimit): Promise<unknown> {
  return client.getJson(target, { ...limit, bytesMax: ANSWER_BYTES_MAX.status })
}

/** Status codes for a missing path. */
const MISSING: ReadonlySet<unknown> = new Set([404, 405, 410, 501])

/** The error, if it means that the device does not have the path. Rethrows any other one. */
function missingPath(error: unknown): CapfleetError {
  const isMissing = error instanceof CapfleetError && error.code === 'not-found'
  if (isMissing || (error instanceof CapfleetError && MISSING.has(error.details.members?.deviceStatus)))
    return error
  throw error
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
