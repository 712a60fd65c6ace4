/**
 * What a device can be asked for. Those of capfleet know every parameter of a download; third-party devices know what
 * the API of the appliances names (appliance-api.md, 4.4), or, where they have the paths below /pcap/ alone, what it names there
 * (4.5). They may pass over anything else without a word: the gateway does it itself, or refuses it.
 */
import { CapfleetError } from '../../shared/base/error.ts'
import { DOWNLOAD_PARAMETERS } from '../../shared/query/download-parameters.ts'
import type { DownloadKind, DownloadQuery } from '../../shared/query/download-query.ts'
import { LEGACY_CAPTURES_MAX } from '../../shared/query/legacy-query.ts'

/** legacy: third-party, without the paths below /api/v1/. */
export const DEVICE_KINDS = ['capfleet', 'api', 'legacy'] as const
export type DeviceKind = (typeof DEVICE_KINDS)[number]
/** Third-party kinds. */
export type ForeignKind = Exclude<DeviceKind, 'capfleet'>

/** Parameters of the API that a third-party device may be said to pass over. */
export const IGNORABLE_PARAMETERS = [
  'FilterBPF',
  'FilterBPFDecap',
  'FilterFrame',
  'TSMode',
  'TSMax',
  'Slice',
  'Compression',
] as const
export type IgnorableParameter = (typeof IGNORABLE_PARAMETERS)[number]

/** What is known of a third-party device. */
export interface ForeignProfile {
  readonly kind: ForeignKind
  /** As configured; default: none. */
  readonly ignores?: readonly IgnorableParameter[] | undefined
}

type Headers = Readonly<Record<string, string>>

/** Every answer of capfleet names the request; no proxy adds or takes that. */
export function kindOfAnswer(headers: Headers): 'capfleet' | 'api' {
  return headers['capfleet-request-id'] === undefined ? 'api' : 'capfleet'
}

/** A kind that is not known yet is taken for one of ours, whose refusals are understood. */
export function isForeign(kind: DeviceKind | undefined): kind is ForeignKind {
  return kind === 'api' || kind === 'legacy'
}

/** A stream that has just ended here may count at a third-party device a little longer: the pauses before it is asked again. */
export const FREED_LATE_MS = [50, 200, 750] as const

type Field = keyof DownloadQuery & keyof typeof DOWNLOAD_PARAMETERS

/** Parameters whose work the gateway can do on the packets, in a merge of that one device. */
const GATEWAYS_OWN = [
  'maxPackets',
  'maxBytes',
  'tsMaxNs',
  'sliceBytes',
  'timeResolution',
  'compression',
] as const

const FILTERS = ['filterBpf', 'frameFilter', 'timeSource'] as const

/** Parameters that a third-party device knows, beside those that choose packets by name and time. */
const KNOWN: Readonly<Record<ForeignKind, Readonly<Record<DownloadKind, ReadonlySet<Field>>>>> = {
  api: {
    single: new Set([...FILTERS, 'filterDecap', 'compression']),
    timerange: new Set([...FILTERS, 'filterDecap', 'compression', 'tsMaxNs', 'sliceBytes']),
    splittime: new Set(FILTERS),
  },
  legacy: {
    // FilterRE too, says the API; no device could be seen to heed it.
    single: new Set(['filterBpf', 'compression']),
    timerange: new Set(['tsMaxNs']),
    splittime: new Set(['filterBpf']),
  },
}

/** What every device knows, or shows that it does not: how a body is compressed, and what it did of After. */
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

/** Parameters whose work only the device can do. */
const DEVICES_OWN = [...FILTERS, 'filterDecap', 'filterRegex', 'follow'] as const

/** Fails with bad-parameter when a third-party device does not know what is asked for, and the gateway cannot do it. */
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

/** Whether the gateway has work to do on what a third-party device sends. */
export function needsGateway(profile: ForeignProfile, query: DownloadQuery): boolean {
  // A device that ignores them sends more than was asked for, and nothing shows it.
  if (isAsked(query, 'sliceBytes') || isAsked(query, 'tsMaxNs')) return true
  return GATEWAYS_OWN.some((field) => isAsked(query, field) && !isKnown(profile, query.kind, field))
}

function isKnown({ kind, ignores = [] }: ForeignProfile, path: DownloadKind, field: Field): boolean {
  const { name } = DOWNLOAD_PARAMETERS[field]
  return KNOWN[kind][path].has(field) && !ignores.some((ignored) => ignored === name)
}

/** The query without what a third-party device does not know. REQUIRES: the gateway does it instead. */
export function withinProfile<Query extends DownloadQuery>(profile: ForeignProfile, query: Query): Query {
  const { tsMaxNs, sliceBytes, compression } = query
  const knows = (field: Field) => isKnown(profile, query.kind, field)
  return {
    ...query,
    tsMaxNs: knows('tsMaxNs') ? tsMaxNs : undefined,
    sliceBytes: knows('sliceBytes') ? sliceBytes : undefined,
    compression: knows('compression') ? compression : 'none',
    maxPackets: undefined,
    maxBytes: undefined,
    timeResolution: 'nsec',
    // It says which path is asked: below /pcap/ an appliance knows even less than the rest of the API.
    capturesMax: profile.kind === 'legacy' ? LEGACY_CAPTURES_MAX : undefined,
  }
}

/**
 * The first parameter of the target that a third-party device may have ignored, which was asked as if it were ours: it knows
 * less, or has not been checked. Undefined: there is none, or the answer is one of ours.
 */
export function passedOver(target: string, headers: Headers): string | undefined {
  if (kindOfAnswer(headers) === 'capfleet') return undefined
  const { searchParams } = new URL(target, 'http://device')
  return [...searchParams.keys()].find((name) => !SAFE_TO_IGNORE.has(name))
}

/** For a device that was taken for one of ours. */
export function passedOverBy(device: string, name: string): CapfleetError {
  return new CapfleetError(
    'device-protocol',
    `device ${device} does not run capfleet as assumed, and may have ignored ${name}; ask again, or set kind: api for it`,
    { param: name, members: { devices: [device] } },
  )
}

/** For a third-party device that does not know a parameter, or does not heed it. */
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
