/** Of all requests of the fleet, those that are ahead of a download from some devices. */
import type { QueuePlace } from '../base/queue.ts'

export interface QueueCounts {
  readonly waiting: number
  readonly streaming: number
  /** Their gateway is silent: it is unknown whether they are still streaming. */
  readonly suspect: number
}

/** undefined: of all devices. */
export function requestsOf(
  requests: readonly QueuePlace[],
  devices: readonly string[] | undefined,
): readonly QueuePlace[] {
  if (devices === undefined) return requests
  return requests.filter((request) => request.devices.some((device) => devices.includes(device)))
}

export function queueCounts(requests: readonly Pick<QueuePlace, 'state'>[]): QueueCounts {
  const count = (wanted: QueuePlace['state']): number =>
    requests.filter(({ state }) => state === wanted).length
  return { waiting: count('waiting'), streaming: count('streaming'), suspect: count('suspect') }
}
