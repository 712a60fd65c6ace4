/**
 * Devices are not trusted to filter: one that does not support a parameter would send all packets, and call them
 * complete.
 */
import { CapfleetError } from '../../../shared/base/error.ts'
import { parseIgnoredNames } from '../../../shared/query/ignored-names.ts'
import { ANSWER_BYTES_MAX, type DeviceClient } from '../../device/device-client.ts'
import { deviceProtocol } from '../../device/device-failure.ts'
import { isForeign, passedOver, passedOverBy } from '../../device/device-kind.ts'
import type { DeviceStream } from '../../device/device-stream.ts'
import type { DownloadStep } from '../../fleet/plan/plan.ts'

/** An invalid filter: a device that filters must compile it, and fails. */
const NO_FILTER = ')'
const PATH = '/api/v1/pcap/estimate'
const QUESTION = `${PATH}?TSBegin=1&TSEnd=2&TSUnit=nanos&FilterBPF=${encodeURIComponent(NO_FILTER)}`

/**
 * Resolves when the device rejects an invalid filter, which shows that it compiles filters and does not ignore them.
 * Fails with device-protocol if it does anything else, with whatever keeps it from answering, or the signal's reason.
 * A device that is known to be a third-party device is not asked, because its API has no such question.
 */
export async function proveFilters(
  client: DeviceClient,
  { device, deviceKind }: Pick<DownloadStep, 'device' | 'deviceKind'>,
  asking: { readonly caller: string; readonly signal: AbortSignal },
): Promise<void> {
  if (isForeign(deviceKind)) throw unproved(device, 'it is a third-party device')
  let cause: unknown
  try {
    await client.getText(QUESTION, { bytesMax: ANSWER_BYTES_MAX.estimate, ...asking })
  } catch (error) {
    asking.signal.throwIfAborted()
    if (!(error instanceof CapfleetError) || NOT_NOW.has(error.code)) throw error
    if (error.code === 'bad-bpf') return
    cause = error
  }
  const why = lacksProof(cause) ? `it does not have ${PATH}` : 'it did not reject an invalid filter as such'
  throw unproved(device, why, cause)
}

function unproved(device: string, why: string, cause?: unknown): CapfleetError {
  return deviceProtocol(
    device,
    `has not shown that it filters packets (${why}), and you may only receive packets that pass your filter`,
    cause,
  )
}

/** Whether the device failed to prove its filters because it does not have the path of the question. */
export function lacksProof(error: unknown): boolean {
  if (!(error instanceof CapfleetError)) return false
  return error.code === 'not-found' || error.details.members?.deviceStatus === 404 || lacksProof(error.cause)
}

/** It says nothing of what the device can do. */
const NOT_NOW: ReadonlySet<string> = new Set([
  'compiler-busy',
  'device-timeout',
  'device-unreachable',
  'draining',
  'store-unavailable',
])

/**
 * Fails with device-protocol if the device says that it ignored a requested parameter (except After, whose handling it
 * reports separately), or if a third-party device that was addressed like a capfleet device may have ignored one.
 */
export function refuseIgnored(
  { device, target, deviceKind }: Pick<DownloadStep, 'device' | 'target' | 'deviceKind'>,
  { head }: Pick<DeviceStream, 'head'>,
): void {
  const silent = isForeign(deviceKind) ? undefined : passedOver(target, head.headers)
  if (silent !== undefined) throw passedOverBy(device, silent)
  const asked = new URLSearchParams(target.slice(target.indexOf('?') + 1))
  const ignored = parseIgnoredNames(head.headers['capfleet-ignored'])
  const [name] = ignored.filter((one) => one !== 'After' && asked.has(one))
  if (name === undefined) return
  throw deviceProtocol(device, `does not support ${name}, and would send something other than requested`)
}
