/**
 * What a device can be asked for. Those of capfleet know every parameter of a download; those of other makers know what
 * the API of the appliances names (appliance-api.md, 4.4), and may pass over anything else without a word: the gateway does it
 * itself, or refuses it.
 */
import { CapfleetError } from '../base/error.ts'
import { DOWNLOAD_PARAMETERS } from '../query/download-parameters.ts'
import type { DownloadKind, DownloadQuery } from '../query/download-query.ts'

export const DEVICE_KINDS = ['capfleet', 'api'] as const
export type DeviceKind = (typeof DEVICE_KINDS)[number]

const DOWNLOAD_KINDS = ['single', 'timerange', 'splittime'] as const satisfies readonly DownloadKind[]

type Headers = Readonly<Record<string, string>>

/** Every answer of capfleet names the request; no proxy adds or takes that. */
export function kindOfAnswer(headers: Headers): DeviceKind {
  return headers['capfleet-request-id'] === undefined ? 'api' : 'capfleet'
}

type Field = keyof DownloadQuery & keyof typeof DOWNLOAD_PARAMETERS

/** Parameters whose work the gateway can do on the packets, in a merge of that one device. */
const GATEWAYS_OWN = ['maxPackets', 'maxBytes', 'tsMaxNs', 'timeResolution', 'compression'] as const

/** Parameters that a device of the API knows, beside those of ALWAYS_KNOWN. */
const KNOWN: Readonly<Record<DownloadKind, ReadonlySet<Field>>> = {
  single: new Set(['filterDecap', 'compression']),
  timerange: new Set(['filterDecap', 'compression', 'tsMaxNs', 'sliceBytes']),
  splittime: new Set([]),
}

/** What chooses the packets. Of After devices of ours say themselves what they did. */
const ALWAYS_KNOWN: ReadonlySet<string> = new Set([
  'StreamName',
  'TSBegin',
  'TSEnd',
  'TSUnit',
  'TSZone',
  'Start',
  'Stop',
  'FilterBPF',
  'FilterFrame',
  'TSMode',
  'After',
])

/** Parameters whose work only the device can do. */
const DEVICES_OWN = ['filterDecap', 'filterRegex', 'sliceBytes', 'follow'] as const

/** Fails with bad-parameter when a device of the API does not know what is asked for, and the gateway cannot do it. */
export function refuseUnknownToApi(device: string, query: DownloadQuery): void {
  for (const field of DEVICES_OWN) {
    if (isAsked(query, field) && !KNOWN[query.kind].has(field))
      throw unknownTo(device, DOWNLOAD_PARAMETERS[field].name)
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

/** The first parameter of the target that the device may have passed over in silence, as its answer shows; undefined: none. */
export function passedOver(target: string, headers: Headers): string | undefined {
  if (kindOfAnswer(headers) === 'capfleet') return undefined
  const { pathname, searchParams } = new URL(target, 'http://device')
  const kind = DOWNLOAD_KINDS.find((one) => pathname.endsWith(`/${one}`))
  const own = kind === undefined ? [] : Array.from(KNOWN[kind], (field) => DOWNLOAD_PARAMETERS[field].name)
  const known = new Set<string>([...ALWAYS_KNOWN, ...own])
  // Below /pcap/ a range has no filter.
  if (pathname === '/pcap/timerange') known.delete('FilterBPF')
  return [...searchParams.keys()].find((name) => !known.has(name))
}

/** For a device that was taken for one of ours. */
export function passedOverBy(device: string, name: string): CapfleetError {
  return new CapfleetError(
    'device-protocol',
    `device ${device} is not of capfleet, as it was taken for, and may have passed over ${name}; ask again, or set kind: api for it`,
    { param: name, members: { devices: [device] } },
  )
}

/** For a device of another maker. */
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
