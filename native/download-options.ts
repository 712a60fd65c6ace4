/** The options of a download, their validation, and the numbers that binding/ uses for them. */
import { CapfleetError } from '../src/shared/base/error.ts'
import { MAX_CAPTURED_LENGTH, PCAP_HEADER_BYTES } from '../src/shared/pcap/pcap-sizes.ts'
import { COMPRESSION_LEVELS, type Compression } from './compression.ts'
import { DEDUP_KEY_NUMBERS, type DedupBy } from './dedup-keys.ts'

/** The segments of one capture port to read. */
export interface StreamFiles {
  readonly port: number
  /** The port's folder, such as .../<capture>/cap0. */
  readonly folder: string
  /**
   * Entries of LOG_ENTRY_BYTES in recording order, as returned by packLogEntries(); their checksums are not needed. A
   * segment with SegmentFlag.growing is still being written: entries missing at the end of its index are no loss.
   */
  readonly segments: Uint8Array
}

/** Values of `TSMode`: which timestamp a returned packet has. */
export type TimeSource =
  | 'nic'
  | 'vendorA7130'
  | 'vendorA7150_overwrite'
  | 'vendorA7150_insert'
  | 'vendorA7280_eth64'
  | 'vendorA7280_mac48'
  | 'vendorB_erspan3'
  | 'vendorB3550'

/** Fields of `FilterFrame`. */
export type FrameField =
  | 'capture.port'
  | 'a7130.device'
  | 'a7130.srcdevice'
  | 'a7130.srcport'
  | 'c3550.srcport'

/**
 * `==`: the field has one of the values; `!=`: it has none of them. A packet without an a7130
 * trailer has 0 in those fields; one without a c3550 trailer has no value there.
 */
export interface FrameCondition {
  readonly field: FrameField
  readonly op: '==' | '!='
  /** 0 to 2^32 - 1 each, at least one. */
  readonly values: readonly number[]
}

export interface DownloadOptions {
  /** The order breaks ties: packets with equal timestamps are returned in the order of this list. */
  readonly streams: readonly StreamFiles[]
  /** Half-open: beginNs <= NIC timestamp < endNs, whatever the time source. */
  readonly beginNs: bigint
  readonly endNs: bigint
  /** A packet must meet all conditions. */
  readonly frameFilter?: readonly FrameCondition[] | undefined
  /** A cBPF program from the compile helper, for the streams' link type; absent = every packet. */
  readonly filter?: Uint8Array | undefined
  /** Whether `filter` is applied to the innermost packet of tunnels and tags; the stored packet is returned. */
  readonly filterDecap?: boolean | undefined
  /** Ranges of addresses from packAddressList(), of which a packet must bear one; absent = every packet. */
  readonly addresses?: Uint8Array | undefined
  /**
   * Whether to read even the blocks that could be skipped because of their sieves, so that the duration of the download
   * does not reveal which addresses occur in packets that do not match `filter`.
   */
  readonly readsAllBlocks?: boolean | undefined
  /** A serialized Hyperscan database from the compile helper, searched in the captured bytes. */
  readonly regex?: Uint8Array | undefined
  /**
   * Default: nic. For the others `streams` must also contain the segments before the range that lookBackNs() requires:
   * vendors' clocks are computed from earlier packets. Packets are sorted by their new time, within the engine's
   * bounded window.
   */
  readonly timeSource?: TimeSource | undefined
  /**
   * For vendorA7280_mac48: a source address whose time differs from the NIC's by more than this is a real address.
   * Default: 60 s.
   */
  readonly mac48LimitNs?: bigint | undefined
  /** Kinds of headers left out of returned packets; before sliceBytes. Default: none. */
  readonly strip?: readonly StripKind[] | undefined
  /** Leave out packets that are copies of one returned at most this long before. */
  readonly dedupNs?: bigint | undefined
  /** What copies have in common. Default: payload. */
  readonly dedupBy?: DedupBy | undefined
  /** Keep at most this many bytes of each packet (1 to 12288). */
  readonly sliceBytes?: number | undefined
  /** End before the first packet that is this much or more after the first returned one. */
  readonly tsMaxNs?: bigint | undefined
  /** End after at most this many bytes of the file, between packets; includes everything else in it, so >= 24. */
  readonly maxBytes?: bigint | undefined
  /** End after this many packets; at least 1. */
  readonly maxPackets?: bigint | undefined
  /**
   * Start at this byte of the uncompressed body. Default: 0, the start of the file header. If the body is not longer
   * than this, no bytes are returned.
   */
  readonly afterBytes?: bigint | undefined
  readonly timeResolution: 'nsec' | 'usec'
  readonly compression: Compression
  /** Link type word and snaplen of the file header when `streams` is empty. */
  readonly emptyLinkType?: number | undefined
  /** The file is pcapng. Default: PCAP. */
  readonly pcapng?: PcapngParts | undefined
}

/** The blocks of a pcapng file that are not packets. */
export interface PcapngParts {
  /** The file begins with these blocks; at most 1 MiB. */
  readonly head: Uint8Array
  /**
   * Every port and link type of `streams`. The engine numbers them in this order, and writes a description before the
   * first packet of its interface, or of one after it in the list.
   */
  readonly interfaces: readonly PcapngInterface[]
  /** How many of them the head describes. */
  readonly described: number
  /** By time; descriptions and remarks together have at most 512 KiB. */
  readonly remarks: readonly PcapngRemark[]
  /**
   * Maximum number of bytes of the whole file that are not packets, including what the caller appends. Counts towards
   * maxBytes.
   */
  readonly otherBytes: number
}

export interface PcapngInterface {
  readonly port: number
  readonly linkType: number
  /** Its Interface Description Block. */
  readonly description: Uint8Array
}

/** Options for the first packet at or after a time. */
export interface PcapngRemark {
  readonly atNs: bigint
  /** Each padded to four bytes, without the end of options. */
  readonly options: Uint8Array
}

/** The same in the form for binding/. */
export interface NativeOptions {
  readonly streams: readonly StreamFiles[]
  readonly beginNs: bigint
  readonly endNs: bigint
  readonly frameFilter: readonly NativeCondition[]
  readonly filter: Uint8Array | undefined
  readonly filterDecap: boolean
  readonly addresses: Uint8Array | undefined
  readonly readsAllBlocks: boolean
  readonly regex: Uint8Array | undefined
  readonly timeSource: number
  readonly mac48LimitNs: bigint | undefined
  readonly stripped: number
  readonly dedupNs: bigint | undefined
  readonly dedupKey: number
  readonly sliceBytes: number
  readonly tsMaxNs: bigint | undefined
  readonly maxBytes: bigint | undefined
  readonly maxPackets: bigint | undefined
  readonly afterBytes: bigint
  readonly toMicroseconds: boolean
  readonly codec: number
  readonly level: number
  readonly emptyLinkType: number
  readonly pcapng: PcapngParts | undefined
}

interface NativeCondition {
  readonly field: number
  readonly excludes: boolean
  readonly values: readonly number[]
}

/** Kinds of headers, as numbers to be combined. Must match native/engine/filter/decapsulation.h. */
const STRIPPED_KINDS = { vlan: 1, mpls: 2, tunnels: 4, all: 15 } as const
export type StripKind = keyof typeof STRIPPED_KINDS

/** Must match native/engine/vendor_time/vendor_clock.h. */
export const TIME_SOURCE_NUMBERS: Readonly<Record<TimeSource, number>> = {
  nic: 0,
  vendorA7130: 1,
  vendorA7150_overwrite: 2,
  vendorA7150_insert: 3,
  vendorA7280_eth64: 4,
  vendorA7280_mac48: 5,
  vendorB_erspan3: 6,
  vendorB3550: 7,
}

/** Fails with bad-parameter; the parameter is named as in DownloadOptions. */
export function toNativeOptions(options: DownloadOptions): NativeOptions {
  checkOptions(options)
  return {
    streams: options.streams,
    beginNs: options.beginNs,
    endNs: options.endNs,
    frameFilter: (options.frameFilter ?? []).map(toNativeCondition),
    filter: options.filter,
    filterDecap: options.filterDecap ?? false,
    addresses: options.addresses,
    readsAllBlocks: options.readsAllBlocks ?? false,
    regex: options.regex,
    timeSource: TIME_SOURCE_NUMBERS[options.timeSource ?? 'nic'],
    mac48LimitNs: options.mac48LimitNs,
    stripped: (options.strip ?? []).reduce((kinds, kind) => kinds | STRIPPED_KINDS[kind], 0),
    dedupNs: options.dedupNs,
    dedupKey: DEDUP_KEY_NUMBERS[options.dedupBy ?? 'payload'],
    sliceBytes: options.sliceBytes ?? MAX_CAPTURED_LENGTH,
    tsMaxNs: options.tsMaxNs,
    maxBytes: options.maxBytes,
    maxPackets: options.maxPackets,
    afterBytes: options.afterBytes ?? 0n,
    toMicroseconds: options.timeResolution === 'usec',
    ...COMPRESSION_LEVELS[options.compression],
    emptyLinkType: options.emptyLinkType ?? ETHERNET,
    pcapng: options.pcapng,
  }
}

/** Fails with bad-parameter unless the boundaries of intervals ascend. */
export function checkBoundaries(boundariesNs: readonly bigint[]): void {
  let lastNs = 0n
  for (const boundaryNs of boundariesNs) {
    checkRange('boundariesNs', boundaryNs, 0n)
    if (boundaryNs < lastNs) throw badParameter('boundariesNs', 'must ascend')
    lastNs = boundaryNs
  }
}

const MAX_SLICE_BYTES = 12_288 // fixed by the appliance API, section 8
const MAX_INT64 = 2n ** 63n - 1n
const MAX_UINT32 = 2 ** 32 - 1
const ETHERNET = 1

/** Must match native/engine/filter/frame_filter.h. */
const FRAME_FIELDS: Readonly<Record<FrameField, number>> = {
  'capture.port': 0,
  'a7130.device': 1,
  'a7130.srcdevice': 2,
  'a7130.srcport': 3,
  'c3550.srcport': 4,
}

function checkOptions(options: DownloadOptions): void {
  checkRange('beginNs', options.beginNs, 0n)
  checkRange('endNs', options.endNs, 0n)
  checkRange('tsMaxNs', options.tsMaxNs ?? 1n, 1n)
  checkRange('dedupNs', options.dedupNs ?? 1n, 1n)
  checkRange('mac48LimitNs', options.mac48LimitNs ?? 0n, 0n)
  checkRange('maxBytes', options.maxBytes ?? BigInt(PCAP_HEADER_BYTES), BigInt(PCAP_HEADER_BYTES))
  checkRange('maxPackets', options.maxPackets ?? 1n, 1n)
  checkRange('afterBytes', options.afterBytes ?? 0n, 0n)
  const sliceBytes = options.sliceBytes ?? 1
  if (!Number.isInteger(sliceBytes) || sliceBytes < 1 || sliceBytes > MAX_SLICE_BYTES) {
    throw badParameter('sliceBytes', `must be an integer from 1 to ${MAX_SLICE_BYTES}`)
  }
}

function toNativeCondition({ field, op, values }: FrameCondition): NativeCondition {
  const isUint32 = (value: number): boolean => Number.isInteger(value) && value >= 0 && value <= MAX_UINT32
  if (values.length === 0 || !values.every(isUint32)) {
    throw badParameter('frameFilter', `needs integers from 0 to ${MAX_UINT32} for ${field}`)
  }
  return { field: FRAME_FIELDS[field], excludes: op === '!=', values }
}

/** Signed 64-bit in the engine. */
function checkRange(param: string, value: bigint, least: bigint): void {
  if (value >= least && value <= MAX_INT64) return
  throw badParameter(param, `must be from ${least} to ${MAX_INT64}, got ${value}`)
}

function badParameter(param: string, rule: string): CapfleetError {
  return new CapfleetError('bad-parameter', `${param} ${rule}`, { param })
}
