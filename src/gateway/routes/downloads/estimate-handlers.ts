/** Estimates what a download would deliver, across the fleet and without a stream. */
import { CapfleetError } from '../../../shared/base/error.ts'
import { JoinedSignal } from '../../../shared/base/joined-signal.ts'
import { givenParameters } from '../../../shared/contract/request-parameters.ts'
import { PCAP_HEADER_BYTES } from '../../../shared/pcap/pcap-sizes.ts'
import { estimatedKind, parseDownloadQuery } from '../../../shared/query/download/parse-download-query.ts'
import { ignoredNames } from '../../../shared/query/ignored-names.ts'
import { callerLabel } from '../../device/device-request.ts'
import { type EstimatedPart, mergedBytesMax } from '../../fetch/body/merged-pcapng.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import type { BoundedQuery } from '../../fleet/plan/within-bounds.ts'
import { type DeviceEstimate, estimateDevice } from '../../fleet/questions/device-estimate.ts'
import { isFiltered } from '../request/caller-bounds.ts'
import { captureHolder } from '../request/capture-holder.ts'
import { sourceMembers } from '../request/fleet-selection.ts'
import { parseRequestQuery } from '../request/parse-request-query.ts'
import { requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import { unreachableHeader } from '../request/unreachable-header.ts'
import type { DownloadsParts } from './downloads-parts.ts'

/** A device's own answer, or why there is none. */
type Estimated = { readonly device: string; readonly site: string | undefined } & (
  | { readonly estimate: DeviceEstimate }
  | { readonly error: CapfleetError }
)

/** Fails as the download would for the caller's mistakes; devices that do not answer are listed. */
export async function estimateFleet(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  const kind = estimatedKind(givenParameters(ctx))
  const query = parseRequestQuery(ctx, parts, { kind, parse: parseDownloadQuery, at: 'fleet' })
  const members =
    kind === 'timerange'
      ? sourceMembers(ctx, parts)
      : [parts.fleet.get(await captureHolder(query.captureName ?? '', ctx, parts))]
  using leaving = requestSignal(ctx)
  using limit = new JoinedSignal([leaving.signal], parts.limits.probeTimeoutMs)
  const caller = callerLabel(ctx.state.caller?.name ?? '')
  const answers = await Promise.all(
    members.map((member) => estimate(member, query, { caller, signal: limit.signal })),
  )
  const failed = answers.flatMap((answer) => ('error' in answer ? [answer] : []))
  if (failed.length > 0) {
    ctx.set('Capfleet-Unreachable', unreachableHeader(failed.map(({ device }) => device)))
  }
  if (query.ignored.length > 0) ctx.set('Capfleet-Ignored', ignoredNames(query.ignored))
  if (query.timeZone !== undefined) ctx.set('Capfleet-Time-Zone', query.timeZone)
  ctx.set('Cache-Control', 'no-store')
  const counted = { ...sumOf(answers, query), devices: answers.map(shown) }
  ctx.body = { kind, ...(isFiltered(ctx) ? uncounted(counted) : counted), ignored: query.ignored }
}

async function estimate(
  member: FleetMember,
  query: BoundedQuery,
  asking: { readonly caller: string; readonly signal: AbortSignal },
): Promise<Estimated> {
  const { name: device, site } = member.device
  try {
    return { device, site, estimate: await estimateDevice(member, query, asking) }
  } catch (error) {
    const { signal } = asking
    const late = signal.aborted && signal.reason instanceof DOMException
    const failure = late ? tooLate(device) : error
    // A mistake of the caller is the same on every device.
    if (!(failure instanceof CapfleetError) || failure.kind.status < 500) throw failure
    return { device, site, error: failure }
  }
}

function tooLate(device: string): CapfleetError {
  return new CapfleetError('device-timeout', `device ${device} did not answer in time`, {
    members: { devices: [device] },
  })
}

const NOT_TOLD = { packets: null, bytes: null, exact: false }

/** Exact only if every device's answer is exact; no sum if there is no answer. */
function sumOf(answers: readonly Estimated[], query: BoundedQuery): Record<string, unknown> {
  const told = answers.flatMap((answer) => ('estimate' in answer ? [answer] : []))
  if (told.length === 0 && answers.length > 0) return NOT_TOLD
  const parts = told.map(({ device, site, estimate: { bytes } }) => ({ device, site, bytes }))
  return {
    packets: String(told.reduce((sum, { estimate: one }) => sum + one.packets, 0n)),
    bytes: String(fileBytes(parts, query)),
    exact: told.length === answers.length && told.every(({ estimate: one }) => one.exact),
  }
}

/** A PCAP has one header, however many devices it is from. The file of one device is passed on as it is. */
function fileBytes(parts: readonly EstimatedPart[], query: BoundedQuery): bigint {
  const [only, ...more] = parts
  if (only !== undefined && more.length === 0) return only.bytes
  if (query.format === 'pcapng') return mergedBytesMax(query, parts)
  const header = BigInt(PCAP_HEADER_BYTES)
  return parts.reduce((sum, { bytes }) => sum + bytes - header, header)
}

/**
 * Devices count packets regardless of filters, so only the fact remains that the query is valid, and who answered it.
 */
function uncounted({ devices }: { readonly devices: readonly Record<string, unknown>[] }) {
  return { ...NOT_TOLD, devices: devices.map((one) => ('error' in one ? one : { ...one, ...NOT_TOLD })) }
}

function shown(answer: Estimated): Record<string, unknown> {
  if ('error' in answer) {
    const { code, message } = answer.error
    return { device: answer.device, error: { code, detail: message } }
  }
  const { packets, bytes, exact, linkType } = answer.estimate
  return { device: answer.device, packets: String(packets), bytes: String(bytes), exact, linkType }
}
