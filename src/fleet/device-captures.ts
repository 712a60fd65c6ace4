import { type DeviceClient, type ListLimits, type TimeLimit, withinLimit } from '../device/device-client.ts'
import { deviceProtocol } from '../device/device-failure.ts'
import type { LargeAnswers } from './large-answers.ts'

/** One entry of a device's /stream/list. */
export interface CaptureEntry {
  readonly name: string
  /** 0 when the device does not tell. */
  readonly startNs: bigint
  /** Undefined when the device does not tell. */
  readonly endNs: bigint | undefined
  /** The entry as the device sent it: a JSON object, bounded in size and depth. */
  readonly json: string
}

/** How lists are read, over all devices. */
export interface ListReading extends ListLimits {
  readonly largeAnswers: LargeAnswers
}

/** The longest list in bytes that does not count as a large answer. */
const SMALL_BYTES = 256 * 1_024

/**
 * The list of one device, newest first. Fails with device-timeout, or as DeviceClient.getJson does. While
 * more of it is read than a few hundred captures need, it holds a place among the large answers.
 */
export async function fetchDeviceCaptures(
  client: DeviceClient,
  reading: ListReading,
  limit: TimeLimit,
): Promise<readonly CaptureEntry[]> {
  return withinLimit(client.device.name, limit, (signal) => readCaptures(client, reading, signal))
}

async function readCaptures(
  client: DeviceClient,
  reading: ListReading,
  signal: AbortSignal,
): Promise<readonly CaptureEntry[]> {
  const device = client.device.name
  const captures: CaptureEntry[] = []
  let textLength = 0
  let place: Disposable | undefined
  try {
    for await (const entries of client.getList('/stream/list', reading, { signal })) {
      for (const json of entries) {
        captures.push(readEntry(device, json))
        textLength += json.length
      }
      if (textLength > SMALL_BYTES) place ??= await reading.largeAnswers.begin(device, signal)
    }
  } finally {
    place?.[Symbol.dispose]()
  }
  return captures.sort(newestFirst)
}

/** The entry that the JSON text holds. Fails with device-protocol. */
function readEntry(device: string, json: string): CaptureEntry {
  const { StreamName, Path, StartTS, EndTS } = parseEntry(device, json)
  const name = StreamName ?? Path
  if (typeof name !== 'string' || name.length > NAME_LENGTH_MAX)
    throw deviceProtocol(device, 'sent a /stream/list with an entry without a name')
  return { name, startNs: nanosOf(StartTS) ?? 0n, endNs: nanosOf(EndTS), json }
}

function nanosOf(text: unknown): bigint | undefined {
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? BigInt(text) : undefined
}

const NAME_LENGTH_MAX = 256

function parseEntry(device: string, json: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw deviceProtocol(device, 'sent a /stream/list with malformed JSON', cause)
  }
}

function newestFirst(a: CaptureEntry, b: CaptureEntry): number {
  if (a.startNs === b.startNs) return 0
  return a.startNs < b.startNs ? 1 : -1
}
