/**
 * What a device can be asked for. capfleet devices support every download parameter. Third-party devices support what
 * the API of the appliances defines (appliance-api.md, 4.4) or, if they only have the paths below /pcap/, what it
 * defines there (4.5). They may silently ignore anything else, so the gateway does it itself or rejects the request.
 */
import { CapfleetError } from '../../shared/base/error.ts'
import { DOWNLOAD_PARAMETERS } from '../../shared/query/download/download-parameters.ts'
import type { DownloadKind, DownloadQuery } from '../../shared/query/download/download-query.ts'
import { LEGACY_CAPTURES_MAX } from '../../shared/query/download/legacy-query.ts'

/** legacy: third-party, without the paths below /api/v1/. */
export const DEVICE_KINDS = ['capfleet', 'api', 'legacy'] as const
export type DeviceKind = (typeof DEVICE_KINDS)[number]
/** Third-party kinds. */
export type ForeignKind = Exclude<DeviceKind, 'capfleet'>

/** Parameters of the API that can be configured as ignored by a third-party device. */
export const IGNORABLE_PARAMETERS = [
  'FilterBPF',
  'FilterBPFDecap',
  'FilterFrame',
  'TSMode',
  'Slice',
  'Compression',
] as const
export type IgnorableParameter = (typeof IGNORABLE_PARAMETERS)[number]

/** What is known about a third-party device. */
export interface ForeignProfile {
  readonly kind: ForeignKind
  /** As configured. Default: none. */
  readonly ignores?: readonly IgnorableParameter[] | undefined
}

type Headers = Readonly<Record<string, string>>

/** Every answer of capfleet carries the request id; no proxy adds or removes that header. */
export function kindOfAnswer(headers: Headers): 'capfleet' | 'api' {
  return headers['capfleet-request-id'] === undefined ? 'api' : 'capfleet'
}

/** A device of unknown kind is treated as a capfleet device, whose refusals are understood. */
export function isForeign(kind: DeviceKind | undefined): kind is ForeignKind {
  return kind === 'api' || kind === 'legacy'
}

/** Packets of a third-party device that come at most this much too late are sorted. */
export const LATE_NS_MAX = 1_000_000_000n

/** A stream that has just ended here may count at a third-party device a little longer: the pauses before it is asked again. */
export const FREED_LATE_MS = [50, 200, 750] as const

type Field = keyof DownloadQuery & keyof typeof DOWNLOAD_PARAMETERS

/** Parameters that the gateway can apply to the packets itself, in a merge of that one device. */
const GATEWAYS_OWN = [
  'maxPackets',
  'maxBytes',
  'tsMaxNs',
  'sliceBytes',
  'dedupNs',
  'timeResolution',
  'compression',
  'format',
] as const

const FILTERS = ['filterBpf', 'frameFilter', 'timeSource'] as const

/** Parameters that a third-party device is asked for, besides those that select packets by name and time. */
const KNOWN: Readonly<Record<ForeignKind, Readonly<Record<DownloadKind, ReadonlySet<Field>>>>> = {
  api: {
    single: new Set([...FILTERS, 'filterDecap', 'compression']),
    timerange: new Set([...FILTERS, 'filterDecap', 'compression', 'sliceBytes']),
    splittime: new Set(FILTERS),
  },
  legacy: {
    // The API lists FilterRE too, but no device was seen to apply it.
    single: new Set(['filterBpf', 'compression']),
    timerange: new Set(),
    splittime: new Set(['filterBpf']),
  },
}

/** What every device supports, or visibly does not: the compression of the body, and the handling of After. */
const SAFE_TO_IGNORE: ReadonlySet<string> = new Set([
  'StreamName',
  'TSBegin',
  'TSEnd',
  'TSUnit',
  'TSZone',
  'Start',
  'Stop',
  'Compression',
  'After',
])

/** Parameters that only the device can apply. */
const DEVICES_OWN = [...FILTERS, 'filterAddresses', 'filterDecap', 'filterRegex', 'follow', 'strip'] as const

/**
 * Fails with bad-parameter if a third-party device does not support what is asked for and the gateway cannot do it
 * either.
 */
export function refuseUnknownTo(profile: ForeignProfile, device: string, query: DownloadQuery): void {
  const { kind } = profile
  for (const field of DEVICES_OWN) {
    if (isAsked(query, field) && !isKnown(profile, query.kind, field))
      throw unknownTo(device, DOWNLOAD_PARAMETERS[field].name)
  }
  if (query.forcedFilters.length > 0 && !isKnown(profile, query.kind, 'filterBpf'))
    throw unknownTo(device, DOWNLOAD_PARAMETERS.filterBpf.name)
  if (query.timeSourceWord !== undefined && kind === 'legacy')
    throw unknownTo(device, DOWNLOAD_PARAMETERS.timeSource.name)
  const { begin, end } = query.localTimes ?? {}
  if (query.localTimes !== undefined && (kind === 'legacy' || begin === undefined || end === undefined)) {
    const advice =
      kind === 'legacy'
        ? 'does not support local times: give TSBegin and TSEnd as epoch times, or with a zone'
        : 'supports local times only for both TSBegin and TSEnd: give both in the same form'
    throw new CapfleetError('bad-parameter', `device ${device} ${advice}`, {
      param: begin === undefined ? 'TSBegin' : 'TSEnd',
      members: { devices: [device] },
    })
  }
}

/** Whether the gateway has to process what a third-party device sends. */
export function needsGateway(profile: ForeignProfile, query: DownloadQuery): boolean {
  // A device that ignores it sends more than was asked for, undetectably.
  if (isAsked(query, 'sliceBytes')) return true
  return GATEWAYS_OWN.some((field) => isAsked(query, field) && !isKnown(profile, query.kind, field))
}

function isKnown({ kind, ignores = [] }: ForeignProfile, path: DownloadKind, field: Field): boolean {
  const { name } = DOWNLOAD_PARAMETERS[field]
  return KNOWN[kind][path].has(field) && !ignores.some((ignored) => ignored === name)
}

/** The query without what a third-party device does not know. REQUIRES: the gateway does it instead. */
export function withinProfile<Query extends DownloadQuery>(profile: ForeignProfile, query: Query): Query {
  const { sliceBytes, compression } = query
  const knows = (field: Field) => isKnown(profile, query.kind, field)
  return {
    ...query,
    // Counted by the device from a packet that is dropped here, or that is late, it would end the download too early.
    tsMaxNs: undefined,
    sliceBytes: knows('sliceBytes') ? sliceBytes : undefined,
    compression: knows('compression') ? compression : 'none',
    maxPackets: undefined,
    maxBytes: undefined,
    dedupNs: undefined,
    dedupBy: 'payload',
    timeResolution: 'nsec',
    format: 'pcap',
    // Selects the path to request: below /pcap/ an appliance supports even less than the rest of the API.
    capturesMax: profile.kind === 'legacy' ? LEGACY_CAPTURES_MAX : undefined,
  }
}

/**
 * For a request that was made as if to a capfleet device: the first parameter of the target that the device may have
 * ignored, because it is a third-party device that supports less, or has not been checked. Undefined if there is none,
 * or if a capfleet device answered.
 */
export function passedOver(target: string, headers: Headers): string | undefined {
  if (kindOfAnswer(headers) === 'capfleet') return undefined
  const { searchParams } = new URL(target, 'http://device')
  return [...searchParams.keys()].find((name) => !SAFE_TO_IGNORE.has(name))
}

/** For a device that was assumed to be a capfleet device. */
export function passedOverBy(device: string, name: string): CapfleetError {
  return new CapfleetError(
    'device-protocol',
    `device ${device} does not run capfleet as assumed, and may have ignored ${name}; ask again, or set kind: api for it`,
    { param: name, members: { devices: [device] } },
  )
}

/** For a third-party device that does not support a parameter, or ignores it. */
export function unknownTo(device: string, name: string): CapfleetError {
  return new CapfleetError(
    'bad-parameter',
    `device ${device} is a third-party device and does not support ${name} here; it would send packets other than those requested: leave ${name} out`,
    { param: name, members: { devices: [device] } },
  )
}

function isAsked(query: DownloadQuery, field: Field): boolean {
  const value = query[field]
  if (Array.isArray(value)) return value.length > 0
  const row = DOWNLOAD_PARAMETERS[field]
  return value !== undefined && !('default' in row && value === row.default)
}
