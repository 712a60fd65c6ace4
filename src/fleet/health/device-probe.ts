/** The questions of a probe: is the device there, what is its time, how many readers, its oldest packet. */
import { performance } from 'node:perf_hooks'
import { CapfleetError } from '../../base/error.ts'
import { ANSWER_BYTES_MAX, type DeviceClient, type TimeLimit } from '../../device/device-client.ts'
import { deviceProtocol } from '../../device/device-failure.ts'
import { plainText } from '../../device/device-refusal.ts'

/** The device's clock minus ours. The truth lies within `errorNs` to both sides. */
export interface ClockOffset {
  readonly offsetNs: bigint
  readonly errorNs: bigint
}

export interface PtpState {
  readonly sync: boolean
  /** Offset to the PTP grand master, as the device tells it. */
  readonly offsetNs: number | undefined
}

/** What `status` told; undefined where the device said nothing or nothing of the right type. */
export interface DeviceStatus {
  readonly readers: number | undefined
  /** Packets that the running capture has lost. */
  readonly drops: number | undefined
  readonly ptp: PtpState | undefined
}

const STATUS_PATH = '/api/v1/system/status'

const VERSION_LENGTH_MAX = 128

/** The version, as a sign of life. Fails as DeviceClient.getJson does. */
export async function probeVersion(client: DeviceClient, limit: TimeLimit): Promise<string | undefined> {
  const options = { ...limit, bytesMax: ANSWER_BYTES_MAX.version }
  const { version } = membersOf(await client.getJson('/api/v1/system/version', options))
  return plainText(version, VERSION_LENGTH_MAX)
}

/** The device's status. A device without this path tells nothing, which is no failure. */
export async function probeStatus(client: DeviceClient, limit: TimeLimit): Promise<DeviceStatus> {
  const { cat, ptp, capture } = membersOf(await askStatus(client, STATUS_PATH, limit).catch(nothingIfNoPath))
  const { GMSync: sync, GMOffset: offsetNs } = membersOf(ptp)
  return {
    readers: countOf(membersOf(cat).cat_EnableCnt),
    drops: countOf(membersOf(capture).CaptureDrop),
    ptp:
      typeof sync === 'boolean'
        ? { sync, offsetNs: typeof offsetNs === 'number' ? offsetNs : undefined }
        : undefined,
  }
}

function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** Time of the oldest packet that the device still holds; undefined when it does not tell. */
export async function probeOldestPacket(client: DeviceClient, limit: TimeLimit): Promise<bigint | undefined> {
  const { packets_oldest_ts: text } = membersOf(await askStatus(client, '/sysmaster/stats_summary', limit))
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? BigInt(text) : undefined
}

/** Our wall clock can be read to a millisecond only: it is up to so much later than it reads. */
const TICK_NS = 1_000_000n

/** The device's clock, within the time of one question: the device read it between question and answer. */
export async function probeClock(client: DeviceClient, limit: TimeLimit): Promise<ClockOffset> {
  const askedNs = BigInt(Date.now()) * 1_000_000n
  const askedMs = performance.now()
  const options = { ...limit, bytesMax: ANSWER_BYTES_MAX.clock }
  const text = await client.getText('/api/v1/system/time_current', options)
  const roundTripNs = BigInt(Math.ceil((performance.now() - askedMs) * 1_000_000))
  const digits = /^(\d{19})\n?$/.exec(text)?.[1]
  if (digits === undefined) {
    throw deviceProtocol(client.device.name, 'answered time_current with something else than 19 digits')
  }
  const errorNs = (roundTripNs + TICK_NS) / 2n
  return { offsetNs: BigInt(digits) - (askedNs + errorNs), errorNs }
}

function askStatus(client: DeviceClient, target: string, limit: TimeLimit): Promise<unknown> {
  return client.getJson(target, { ...limit, bytesMax: ANSWER_BYTES_MAX.status })
}

function nothingIfNoPath(error: unknown): undefined {
  const isMissing = error instanceof CapfleetError && error.code === 'not-found'
  if (!isMissing && !(error instanceof CapfleetError && error.details.members?.deviceStatus === 404))
    throw error
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
