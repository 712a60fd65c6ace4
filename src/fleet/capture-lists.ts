import { CapfleetError } from '../base/error.ts'
import type { DeviceClient } from './device-client.ts'
import { deviceFailure, deviceProtocol } from './device-failure.ts'

/** One entry of a device's /stream/list, as the device sent it (api-decisions section 2). */
export interface CaptureEntry {
  readonly StreamName: string
  readonly [member: string]: unknown
}

export interface CaptureList {
  readonly device: string
  readonly captures: readonly CaptureEntry[]
}

export interface UnreachableDevice {
  readonly device: string
  readonly error: CapfleetError
}

/** What the devices hold, asked of all at the same time; those that do not answer are told apart. */
export async function fetchCaptureLists(
  clients: readonly DeviceClient[],
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<{ readonly lists: readonly CaptureList[]; readonly unreachable: readonly UnreachableDevice[] }> {
  const lists: CaptureList[] = []
  const unreachable: UnreachableDevice[] = []
  const answers = await Promise.allSettled(clients.map((client) => fetchOne(client, options)))
  options.signal.throwIfAborted()
  for (const [index, answer] of answers.entries()) {
    const device = clients[index]?.device.name ?? ''
    if (answer.status === 'fulfilled') lists.push({ device, captures: answer.value })
    else unreachable.push({ device, error: deviceFailure(device, answer.reason) })
  }
  return { lists, unreachable }
}

async function fetchOne(
  client: DeviceClient,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<readonly CaptureEntry[]> {
  const device = client.device.name
  const late = new AbortController()
  const timer = setTimeout(() => {
    const message = `device ${device} did not send its list within ${timeoutMs / 1_000} s`
    late.abort(new CapfleetError('device-timeout', message, { members: { devices: [device] } }))
  }, timeoutMs)
  try {
    const answer = await client.getJson('/stream/list', AbortSignal.any([signal, late.signal]))
    return entriesOf(device, answer)
  } catch (error) {
    throw late.signal.aborted ? late.signal.reason : error
  } finally {
    clearTimeout(timer)
  }
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
