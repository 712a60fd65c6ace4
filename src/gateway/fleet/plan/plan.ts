import { CapfleetError } from '../../../shared/base/error.ts'
import { formatDownloadQuery } from '../../../shared/query/download/format-download-query.ts'
import type { FetchCompression } from '../../device/device.ts'
import {
  type DeviceKind,
  type ForeignProfile,
  type IgnorableParameter,
  isForeign,
  needsGateway,
  refuseUnknownTo,
  withinProfile,
} from '../../device/device-kind.ts'
import type { BoundedQuery } from './within-bounds.ts'

/** What one device is asked for. */
export interface DownloadStep {
  readonly device: string
  /** Path and query string on the device. */
  readonly target: string
  /** Whether the caller may only have packets that pass a filter: the device must first prove that it filters. */
  readonly isForced: boolean
  /** Default: one that supports all parameters. */
  readonly deviceKind?: DeviceKind | undefined
  /** Parameters that a third-party device is known to ignore. */
  readonly ignores?: readonly IgnorableParameter[] | undefined
  /** Whether a second more is no burden, because it is bulk work. Default: no. */
  readonly isBulk?: boolean | undefined
  /** Compression that the gateway requests for a stream that it merges. Default: none. */
  readonly fetchCompression?: FetchCompression | undefined
  /** Whether the device sends nothing while it has nothing: a quiet stream is not a broken one. */
  readonly mayPause?: boolean | undefined
  /**
   * The half-open time range whose packets are kept, whatever else a third-party device sends. Default: everything is
   * kept.
   */
  readonly kept?: TimeRange | undefined
  /** Where in the body the device begins, for an uncompressed one. Default: with its first byte. */
  readonly after?: AfterBytes | undefined
}

export type TimeRange = Pick<BoundedQuery, 'beginNs' | 'endNs'>

/** A position in an uncompressed body where a packet begins. */
export interface AfterBytes {
  readonly bytes: number
  /** The PCAP header of the body, which is not sent again. */
  readonly header: Buffer
}

/**
 * What will be fetched and how it is processed: `relay` forwards the bytes of the only step unchanged, `merge` joins
 * all steps by time and compresses the result here.
 */
export interface DownloadPlan {
  readonly kind: 'relay' | 'merge'
  /** One step for each device, in the order that decides between packets of equal time. */
  readonly steps: readonly DownloadStep[]
  readonly query: BoundedQuery
  /** Start of the range of the whole body, if `query` is only for its rest. */
  readonly wholeBeginNs?: bigint
}

/**
 * Pure function: no look-ups, no I/O. `devices` are names in the order of the fleet, at least one. Fails with
 * bad-parameter if there are more than `devicesMax`.
 */
export function planDownload(
  query: BoundedQuery,
  devices: readonly string[],
  devicesMax: number,
): DownloadPlan {
  if (devices.length > devicesMax) {
    throw new CapfleetError(
      'bad-parameter',
      `Device selects ${devices.length} devices, but one download may use at most ${devicesMax}; select fewer`,
      { param: 'Device' },
    )
  }
  const [only] = devices
  if (only !== undefined && devices.length === 1) return planRelay(query, only)
  if (query.follow) throw followedByMany(devices)
  return planMerge(query, devices)
}

/** The same for packets that the gateway itself reads, also those of one device. */
export function planMerge(query: BoundedQuery, devices: readonly string[]): DownloadPlan {
  return { kind: 'merge', query, steps: devices.map((device) => mergeStep({ device }, query)) }
}

/** What the fleet knows about a device, by name. */
export interface DeviceProfiles {
  kindOf(device: string): DeviceKind | undefined
  ignoredBy(device: string): readonly IgnorableParameter[] | undefined
  fetchCompressionOf(device: string): FetchCompression | undefined
}

/**
 * The plan with each device asked for what its kind knows; the gateway does the rest itself. Streams of a merge are
 * compressed on their way to the gateway as their devices are configured. Fails with bad-parameter for what neither can
 * do. Done twice it changes nothing more.
 */
export function withinProfiles(
  plan: DownloadPlan,
  profiles: DeviceProfiles,
  { isBulk = false }: { readonly isBulk?: boolean } = {},
): DownloadPlan {
  const { query } = plan
  let kind = plan.kind
  for (const { device } of plan.steps) {
    const profile = profileOf(device, profiles)
    if (profile === undefined) continue
    refuseUnknownTo(profile, device, query)
    if (needsGateway(profile, query)) kind = 'merge'
  }
  const steps = plan.steps.map((step): DownloadStep => {
    const { device } = step
    const profile = profileOf(device, profiles)
    const known = { device, deviceKind: profile?.kind, ignores: profile?.ignores, isBulk }
    if (kind === 'merge') {
      const fetchCompression = profiles.fetchCompressionOf(device) ?? 'none'
      const isAsked = profile === undefined && fetchCompression === step.fetchCompression
      return isAsked ? step : mergeStep({ ...known, fetchCompression }, query)
    }
    if (profile === undefined) return step
    return { ...known, target: targetOf(withinProfile(profile, query)), isForced: isForced(query) }
  })
  return { kind, query, steps }
}

function profileOf(device: string, profiles: DeviceProfiles): ForeignProfile | undefined {
  const ignores = profiles.ignoredBy(device)
  // Only third-party devices are configured with it, whether they have answered yet or not.
  const kind = profiles.kindOf(device) ?? (ignores === undefined ? undefined : 'api')
  return isForeign(kind) ? { kind, ignores } : undefined
}

/**
 * The packets that one device of a merge contributes. A device that ended at MaxBytes would leave a gap, because others continue
 * with later packets. One that ended at MaxPackets might have sent too few, because some of its packets may be dropped
 * as duplicates. One that truncated its timestamps would lose their exact order. All three, and Dedup, are applied to
 * the merged records.
 */
export function partOfMerge(query: BoundedQuery): BoundedQuery {
  return {
    ...query,
    maxBytes: undefined,
    maxPackets: undefined,
    dedupNs: undefined,
    dedupBy: 'payload',
    timeResolution: 'nsec',
  }
}

/** What a device of a merge is asked for. */
export function mergeStep(
  {
    device,
    deviceKind,
    ignores,
    isBulk,
    fetchCompression = 'none',
  }: Pick<DownloadStep, 'device' | 'deviceKind' | 'ignores' | 'isBulk' | 'fetchCompression'>,
  query: BoundedQuery,
): DownloadStep {
  const compression = fetchCompression === 'zstd' ? 'zstd_fast' : fetchCompression
  const asked: BoundedQuery = { ...partOfMerge(query), compression }
  const step = { device, deviceKind, ignores, isBulk, fetchCompression, isForced: isForced(query) }
  if (!isForeign(deviceKind)) return { ...step, target: targetOf(asked) }
  const known = withinProfile({ kind: deviceKind, ignores }, asked)
  if (!isTimedByHardware(query)) return { ...step, target: targetOf(known) }
  const { beginNs, endNs } = query
  const target = targetOf({ ...known, ...widened(query, step) })
  return { ...step, target, kept: { beginNs, endNs } }
}

/**
 * Whether the gateway can see by its timestamp that a packet belongs to the range. With TSMode it cannot: some devices
 * select packets by the corrected time, others by the hardware time, which is then not in the file.
 */
export function isTimedByHardware({
  kind,
  timeSource,
  timeSourceWord,
  localTimes,
}: Pick<BoundedQuery, 'kind' | 'timeSource' | 'timeSourceWord' | 'localTimes'>): boolean {
  return kind !== 'single' && timeSource === 'nic' && timeSourceWord === undefined && localTimes === undefined
}

const NS_PER_MS = 1_000_000n
const NS_PER_S = 1_000_000_000n
/** A second more is half of this. */
const LONG_RANGE_NS = 2n * NS_PER_S

/**
 * The range that a third-party device is asked for: a device may look packets up by times that are finer or coarser than
 * those in its files, and a packet at the border of two ranges could otherwise be in neither. Whole seconds for bulk work
 * and for a long range, because some devices round down; whole milliseconds for a short one, where a second may be far
 * more than was asked for. It begins earlier in any case, because a time in the file may be rounded up; but a range of a
 * legacy device must not reach into another capture.
 */
export function widened(
  { beginNs, endNs }: TimeRange,
  { deviceKind, isBulk = false }: Pick<DownloadStep, 'deviceKind' | 'isBulk'>,
): TimeRange {
  const isLegacy = deviceKind === 'legacy'
  const isLong = isBulk || endNs - beginNs >= LONG_RANGE_NS
  const unitNs = isLong && !isLegacy ? NS_PER_S : NS_PER_MS
  const isEarlier = beginNs % unitNs > 0n || beginNs === 0n || isLegacy
  const units = (endNs + unitNs - 1n) / unitNs
  return {
    beginNs: isEarlier ? beginNs - (beginNs % unitNs) : beginNs - NS_PER_MS,
    endNs: units * unitNs,
  }
}

/** The same body of one device, starting at a byte of it. REQUIRES: it is uncompressed, and does not follow. */
export function fromBytes({ kind, query, steps }: DownloadPlan, after: AfterBytes): DownloadPlan {
  const target = targetOf({ ...query, afterBytes: BigInt(after.bytes) })
  return { kind, query, steps: steps.map((step) => ({ ...step, target, after })) }
}

/** What a device of a merge is asked for, starting at a byte of its body. */
export function mergeStepFromBytes(device: string, query: BoundedQuery, after: AfterBytes): DownloadStep {
  return { ...mergeStep({ device }, { ...query, afterBytes: BigInt(after.bytes) }), after }
}

/** The same merge, of what the devices have from a given time. */
export function fromTime({ kind, query, steps }: DownloadPlan, beginNs: bigint): DownloadPlan {
  const later = { ...query, beginNs }
  return {
    kind,
    query: later,
    wholeBeginNs: query.beginNs,
    steps: steps.map((step) => mergeStep(step, later)),
  }
}

/** A single device does all the work itself, including compression. */
function planRelay(query: BoundedQuery, device: string): DownloadPlan {
  const step = { device, target: targetOf(query), isForced: isForced(query) }
  return { kind: 'relay', query, steps: [query.follow ? { ...step, mayPause: true } : step] }
}

/** A device without packets stays silent, so the others' packets could not be sent either. */
function followedByMany(devices: readonly string[]): CapfleetError {
  return new CapfleetError(
    'bad-parameter',
    `Follow is for one device, but Device selects ${devices.length}; follow each of them separately`,
    { param: 'Follow' },
  )
}

function isForced({ forcedFilters }: BoundedQuery): boolean {
  return forcedFilters.length > 0
}

function targetOf(query: BoundedQuery): string {
  // Only below /pcap/ does a device reject a range with too many captures.
  const folder = query.capturesMax === undefined ? '/api/v1/pcap' : '/pcap'
  return `${folder}/${query.kind}?${formatDownloadQuery(query)}`
}
