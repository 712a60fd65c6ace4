/** What the list of a third-party device says of a download that the device itself would get wrong, or explain badly. */
import { CapfleetError } from '../../shared/base/error.ts'
import type { DownloadQuery } from '../../shared/query/download-query.ts'
import { LEGACY_CAPTURES_MAX } from '../../shared/query/legacy-query.ts'
import type { FleetMember } from '../fleet/fleet.ts'
import type { DownloadStep } from '../fleet/plan.ts'

interface Asked {
  readonly step: DownloadStep
  readonly query: DownloadQuery
  readonly signal: AbortSignal
}

/**
 * Fails with bad-parameter when the device has the legacy path of a time range alone, and the range reaches into more captures
 * than that path crosses: the device would leave the others out and say nothing. Fails as DeviceCaptures.page() does.
 */
export async function refuseLostCaptures(
  { captures }: FleetMember,
  { step: { device, deviceKind }, query: { kind, beginNs, endNs }, signal }: Asked,
): Promise<void> {
  if (deviceKind !== 'legacy' || kind !== 'timerange') return
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

/** The failure of a download by name; where the device lists the capture that it answered 404 for, it is the path that it lacks. */
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
