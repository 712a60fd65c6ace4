import type { DeviceClient } from './device-client.ts'
import { deviceProtocol } from './device-failure.ts'
import { type CallLimit, withinLimit } from './within-limit.ts'

/** One entry of a device's /stream/list, as the device sent it (api-decisions section 2). */
export interface CaptureEntry {
  readonly StreamName: string
  readonly [member: string]: unknown
}

/** The list of one device. Fails with device-timeout, or as DeviceClient.getJson does. */
export async function fetchDeviceCaptures(
  client: DeviceClient,
  limit: CallLimit,
): Promise<readonly CaptureEntry[]> {
  const device = client.device.name
  return withinLimit(device, limit, async (signal) =>
    entriesOf(device, await client.getJson('/stream/list', signal)),
  )
}

function entriesOf(device: string, answer: unknown): readonly CaptureEntry[] {
  const list = (answer as { List?: unknown } | null)?.List
  if (!Array.isArray(list)) throw deviceProtocol(device, 'sent a /stream/list without List')
  return list.flatMap((item: unknown) => {
    if (typeof item !== 'object' || item === null) return []
    const { StreamName, Path } = item as { StreamName?: unknown; Path?: unknown }
    const name = StreamName ?? Path
    return typeof name === 'string' ? [{ ...item, StreamName: name }] : []
  })
}
