/**
 * What a device can be asked for. Those of capfleet know every parameter of a download; those of other makers know what
 * the API of the appliances names (appliance-api.md, 4.4), and may pass over anything else without a word: the gateway does it
 * itself, or refuses it.
 */
import { CapfleetError } from '../base/error.ts'
import type { DownloadKind, DownloadQuery } from '../query/download-query.ts'

export const DEVICE_KINDS = ['capfleet', 'api'] as const
export type DeviceKind = (typeof DEVICE_KINDS)[number]

type Headers = Readonly<Record<string, string>>

/** Every answer of capfleet names the request; no proxy adds or takes that. */
export function kindOfAnswer(headers: Headers): DeviceKind {
  return headers['capfleet-request-id'] === undefined ? 'api' : 'capfleet'
}

type Field = keyof DownloadQuery

/** Parameters whose work the gateway can do on the packets, in a merge of that one device. */
const GATEWAYS_OWN = ['maxPackets', 'maxBytes', 'tsMaxNs', 'timeResolution', 'compression'] as const

/** Those that a device of the API knows; a range, the name of a capture, FilterBPF, FilterFrame and TSMode it always knows. */
const KNOWN: Readonly<Record<DownloadKind, ReadonlySet<Field>>> = {
  single: new Set(['filterDecap', 'compression']),
  timerange: new Set(['filterDecap', 'compression', 'tsMaxNs', 'sliceBytes']),
  splittime: new Set([]),
}

/** By the name of the parameter, as the caller has it. */
const REFUSED: readonly (readonly [Field, string])[] = [
  ['filterDecap', 'FilterBPFDecap'],
  ['filterRegex', 'FilterRE'],
  ['sliceBytes', 'Slice'],
  ['follow', 'Follow'],
]

/** Fails with bad-parameter when a device of the API does not know what is asked for, and the gateway cannot do it. */
export function refuseUnknownToApi(device: string, query: DownloadQuery): void {
  for (const [field, name] of REFUSED) {
    if (isAsked(query, field) && !KNOWN[query.kind].has(field)) throw unknownTo(device, name)
  }
  const { begin, end } = query.localTimes ?? {}
  if (query.localTimes !== undefined && (begin === undefined || end === undefined)) {
    throw new CapfleetError(
      'bad-parameter',
      `device ${device} takes both times as local ones, or none: write TSBegin and TSEnd the same way`,
      { param: begin === undefined ? 'TSBegin' : 'TSEnd', members: { devices: [device] } },
    )
  }
}

/** Whether the gateway has work to do on what a device of the API sends. */
export function needsGateway(query: DownloadQuery): boolean {
  return GATEWAYS_OWN.some((field) => isAsked(query, field) && !KNOWN[query.kind].has(field))
}

/** The query without what a device of the API does not know. REQUIRES: the gateway does it instead. */
export function withinApi<Query extends DownloadQuery>(query: Query): Query {
  const { tsMaxNs, compression, kind } = query
  return {
    ...query,
    tsMaxNs: KNOWN[kind].has('tsMaxNs') ? tsMaxNs : undefined,
    compression: KNOWN[kind].has('compression') ? compression : 'none',
    maxPackets: undefined,
    maxBytes: undefined,
    timeResolution: 'nsec',
    // Below /pcap/ it knows even less.
    capturesMax: undefined,
  }
}

/** Parameters that no device of the API knows; but for After, of which ours say themselves what they did. */
const BEYOND_API = ['MaxPackets', 'MaxBytes', 'FilterRE', 'Follow', 'TSResolution'] as const

/** The first parameter of the target that the device passed over in silence, as its answer shows; undefined: none. */
export function passedOver(target: string, headers: Headers): string | undefined {
  if (kindOfAnswer(headers) === 'capfleet') return undefined
  const url = new URL(target, 'http://device')
  if (url.pathname === '/pcap/timerange' && url.searchParams.has('FilterBPF')) return 'FilterBPF'
  return BEYOND_API.find((name) => url.searchParams.has(name))
}

export function unknownTo(device: string, name: string): CapfleetError {
  return new CapfleetError(
    'bad-parameter',
    `device ${device} is of another maker and does not know ${name} here; it would send other packets than were asked for: leave ${name} out`,
    { param: name, members: { devices: [device] } },
  )
}

function isAsked(query: DownloadQuery, field: Field): boolean {
  const value = query[field]
  return value !== undefined && value !== false && value !== 'none' && value !== 'nsec'
}
