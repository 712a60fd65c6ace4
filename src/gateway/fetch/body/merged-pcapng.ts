/** What a merge in pcapng consists of beside its packets. */
import { listText } from '../../../shared/base/list-text.ts'
import { PcapngOption, sectionHeader, textOption } from '../../../shared/pcap/pcapng-blocks.ts'
import { endComment, PCAPNG_MISSING } from '../../../shared/pcap/pcapng-end.ts'
import { queryComment, softwareOptions } from '../../../shared/query/download/pcapng-comments.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { rfc3339Of } from '../../../shared/query/time/query-time.ts'
import type { DownloadPlan } from '../../fleet/plan/plan.ts'
import type { BoundedQuery } from '../../fleet/plan/within-bounds.ts'
import { FileInterfaces, INTERFACES_MAX, STATISTICS_BYTES } from '../../pcap/file-interfaces.ts'
import type { BodyResult } from './body.ts'
import type { MergedFile } from './merged-file.ts'

export interface PcapngFileOptions {
  readonly plan: DownloadPlan
  readonly siteOf: (device: string) => string | undefined
  /** Devices whose packets are missing from the start. */
  readonly missing: readonly string[]
}

/** The text of the longest end that says nothing of missing devices. */
const LONGEST_END = endComment({
  packets: 2n ** 64n - 1n,
  corruptBlocks: 2n ** 64n - 1n,
  nextNs: 2n ** 63n - 1n,
  lacks: [],
})
const END_BYTES = LONGEST_END.length + 2 * Uint32Array.BYTES_PER_ELEMENT
/** An interface that is described with the names of a device and a port, a site, and a filter of usual length. */
const DESCRIPTION_BYTES = 512
/** A file has one of these at least. */
const PACKET_BYTES = 64

export class PcapngFile implements MergedFile {
  readonly interfaces: FileInterfaces
  /** The file begins with it. */
  readonly head: Buffer
  readonly resolution: MergedFile['resolution']
  readonly #beginNs: bigint
  readonly #bytesMax: number | undefined

  constructor({ plan, siteOf, missing }: PcapngFileOptions) {
    const { filterBpf, maxBytes, timeResolution, beginNs } = plan.query
    const devices = plan.steps.map(({ device }) => device)
    this.interfaces = new FileInterfaces({ devices, siteOf, filterBpf })
    this.head = pcapngHead(plan.query, devices, missing)
    this.resolution = timeResolution
    this.#beginNs = beginNs
    this.#bytesMax = maxBytes === undefined ? undefined : Number(maxBytes) - this.head.length
  }

  /** With the descriptions of their interfaces. */
  get packetsBytesMax(): bigint | undefined {
    return this.#bytesMax === undefined ? undefined : BigInt(Math.max(0, this.#bytesMax - END_BYTES))
  }

  closing(result: BodyResult, packetsBytes: number): Buffer {
    const { packets, corruptBlocks, perDevice } = result
    const lacking = perDevice.flatMap(({ device, missing, error }) =>
      missing === undefined ? [] : [{ device, missing, detail: error?.detail }],
    )
    const unverified = perDevice.flatMap(({ device, status }) => (status === 'unverified' ? [device] : []))
    const comment = endComment({
      packets: packets ?? 0n,
      corruptBlocks: corruptBlocks ?? 0n,
      nextNs: result.isTruncated === true ? result.nextNs : undefined,
      lacks: [
        ...(lacking.length === 0
          ? []
          : [`without packets of ${listText(lacking.map(({ device }) => device))}`]),
        ...(unverified.length === 0 ? [] : [`not verified to the end: ${listText(unverified)}`]),
      ],
    })
    const missing = lacking.map(({ device, missing: range, detail = '' }) =>
      missingComment(device, range, detail),
    )
    const times = perDevice.flatMap(({ lastNs }) => lastNs ?? [])
    const [atNs = this.#beginNs] = times.toSorted((a, b) => (a > b ? -1 : 1))
    const bytesMax = this.#bytesMax === undefined ? undefined : this.#bytesMax - packetsBytes
    return this.interfaces.closing({ atNs, comments: [comment, ...missing], bytesMax })
  }
}

/** Fails with bad-parameter if MaxBytes leaves no room for a packet. */
export function refuseSmallFile(plan: DownloadPlan): void {
  const { format, maxBytes } = plan.query
  if (plan.kind !== 'merge' || format !== 'pcapng' || maxBytes === undefined) return
  const least = headOf(plan).length + DESCRIPTION_BYTES + STATISTICS_BYTES + END_BYTES + PACKET_BYTES
  if (maxBytes >= BigInt(least)) return
  throw badParameter(
    'MaxBytes',
    `must be at least ${least} with Format=pcapng, because the file also stores the query and the devices; got ${maxBytes}`,
  )
}

function headOf({ query, steps }: DownloadPlan): Buffer {
  return pcapngHead(
    query,
    steps.map(({ device }) => device),
  )
}

/** What a device says of its part, before any of it is fetched. */
export interface EstimatedPart {
  readonly device: string
  readonly site: string | undefined
  /** The most that its own file has. */
  readonly bytes: bigint
}

/** A device describes each interface and has statistics of it in no less. */
const INTERFACE_BYTES_MIN = 80n
/** A comment that counts the duplicates of an interface, and padding of its other texts. */
const INTERFACE_TEXTS_BYTES = 128

/** The most that the merge of several devices has: each interface gets the name of its device here, and the site. */
export function mergedBytesMax(query: BoundedQuery, parts: readonly EstimatedPart[]): bigint {
  const head = pcapngHead(
    query,
    parts.map(({ device }) => device),
  )
  return parts.reduce(
    (sum, { device, site = '', bytes }) => {
      const possible = bytes / INTERFACE_BYTES_MIN
      const interfaces = possible < INTERFACES_MAX ? possible : BigInt(INTERFACES_MAX)
      const added = INTERFACE_TEXTS_BYTES + Buffer.byteLength(device) + Buffer.byteLength(site)
      return sum + bytes + interfaces * BigInt(added)
    },
    BigInt(head.length + END_BYTES),
  )
}

/** Depends only on the query and the devices, not on the machine, so that another gateway can continue the file. */
export function pcapngHead(
  query: BoundedQuery,
  devices: readonly string[],
  missing: readonly string[] = [],
): Buffer {
  const isForced = query.forcedFilters.length > 0
  const lines = [
    queryComment({ ...query, forcedFilters: [] }, { isForced }),
    `devices: ${devices.join(', ')}`,
    ...(missing.length === 0 ? [] : [`missing: ${missing.join(', ')}`]),
  ]
  return sectionHeader([
    textOption(PcapngOption.comment, lines.join('\n')),
    textOption(PcapngOption.sectionHardware, listText(devices)),
    ...softwareOptions(),
  ])
}

/** A comment at the end of the file. */
export function missingComment(
  device: string,
  { fromNs, toNs }: { readonly fromNs: bigint; readonly toNs: bigint },
  detail: string,
): string {
  return `${PCAPNG_MISSING}packets of ${device} from ${rfc3339Of(fromNs)} to ${rfc3339Of(toNs)}: ${detail}`
}
