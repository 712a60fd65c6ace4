/**
 * Uses the capture list of a third-party device to detect downloads that the device would silently get wrong, or
 * reject unhelpfully.
 */
import { CapfleetError } from '../../../shared/base/error.ts'
import type { DownloadQuery } from '../../../shared/query/download/download-query.ts'
import { LEGACY_CAPTURES_MAX } from '../../../shared/query/download/legacy-query.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import { type DownloadStep, widened } from '../../fleet/plan/plan.ts'

interface Asked {
  readonly step: DownloadStep
  readonly query: DownloadQuery
  readonly signal: AbortSignal
}

/**
 * Fails with bad-parameter if the device only has the legacy path for time ranges, and the range reaches into more
 * captures than that path covers: the device would silently leave out the others. Fails like DeviceCaptures.page().
 */
export async function refuseLostCaptures(
  { captures }: FleetMember,
  { step, query, signal }: Asked,
): Promise<void> {
  const { device, deviceKind } = step
  if (deviceKind !== 'legacy' || query.kind !== 'timerange') return
  const { beginNs, endNs } = step.kept === undefined ? query : widened(step.kept, step)
  const most = LEGACY_CAPTURES_MAX + 1
  // Some lists give the time of the last packet as the end.
  const fromNs = beginNs > 0n ? beginNs - 1n : beginNs
  const kept = { entries: most, bytes: KEPT_BYTES }
  const page = await captures.page({ fromNs, toNs: endNs, limit: most, kept }, signal)
  if (page.captures.length < most && !page.hasMore) return
  throw new CapfleetError(
    'bad-parameter',
    `the range reaches into more than ${LEGACY_CAPTURES_MAX} captures of device ${device}, whose only path, /pcap/timerange, supports no more; shorten the range, or download the captures by name`,
    { param: 'TSEnd', members: { devices: [device] } },
  )
}

const KEPT_BYTES = 65_536

/**
 * Explains the failure of a download by name: if the device lists the capture that it answered 404 for, it lacks the
 * path.
 */
export async function explained(
  error: unknown,
  { device: { name }, captures }: FleetMember,
  { step: { target }, query: { captureName }, signal }: Asked,
): Promise<unknown> {
  const isWorded = error instanceof CapfleetError && error.details.members?.deviceStatus === 404
  if (!isWorded || error.code !== 'unknown-capture' || captureName === undefined) return error
  const holding = await captures.holding(captureName, { maxAgeMs: 0, signal }).catch(() => undefined)
  if (holding?.match !== 'full') return error
  const [path] = target.split('?')
  const message = `${error.message}; it lists the capture ${captureName}, so it probably does not have the path ${path}`
  return new CapfleetError('device-protocol', message, { members: { devices: [name] }, cause: error })
}
