/** The captures of devices, from the fleet's list, for the visible lanes. */
import { openAnswer, Problem, type Schemas } from '../base/ask-gateway.ts'
import type { DeviceFailures } from '../base/devices.ts'
import { type CaptureSpan, spansOf } from './capture-spans.ts'
import type { TimeView } from './time-view.ts'

export interface FoundCaptures {
  /** Newest first. */
  readonly captures: readonly CaptureSpan[]
  /** Whether older ones are left out. */
  readonly isCut: boolean
  /** Devices whose captures are not included. */
  readonly failures: DeviceFailures
}

/** A longer list would not be read. To find a capture, users can select devices or a shorter time. */
const CAPTURES_MAX = 200

export async function askCaptures(
  devices: readonly string[],
  { fromNs, toNs }: TimeView,
  signal: AbortSignal,
): Promise<FoundCaptures> {
  return await askList({ Device: devices.join(','), Limit: CAPTURES_MAX, From: fromNs, To: toNs }, signal)
}

/** The newest captures of all devices together. */
export async function askNewest(
  { fromNs, limit }: { readonly fromNs?: bigint; readonly limit: number },
  signal: AbortSignal,
): Promise<readonly CaptureSpan[]> {
  return (await askList({ Limit: limit, ...(fromNs === undefined ? {} : { From: fromNs }) }, signal)).captures
}

/** The time of the newest packet of a device, in its newest captures; undefined: it has none. */
export async function askNewestPacket(device: string, signal: AbortSignal): Promise<bigint | undefined> {
  const { captures, failures } = await askList({ Device: device, Limit: CAPTURES_MAX }, signal)
  const failure = failures.get(device)
  if (failure !== undefined) throw new Problem({ ...failure, status: 0 })
  return captures.reduce<bigint | undefined>(
    (newest, { toNs, packets }) => (packets === '0' || (newest ?? 0n) >= toNs ? newest : toNs),
    undefined,
  )
}

async function askList(
  parameters: Readonly<Record<string, string | number | bigint>>,
  signal: AbortSignal,
): Promise<FoundCaptures> {
  // As text: a number would round the nanoseconds.
  const query = new URLSearchParams(
    Object.entries(parameters).map(([name, value]): [string, string] => [name, String(value)]),
  )
  const answer = (await (
    await openAnswer(`stream/list?${query}`, { signal })
  ).json()) as Schemas['FleetCaptureList']
  const captures = spansOf(answer.List)
  const failures = new Map(answer.Unreachable.map(({ Device, ...failure }) => [Device, failure]))
  return { captures, isCut: answer.Next !== undefined, failures }
}
