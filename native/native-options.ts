/** Checks a download's options and puts them into the numbers that binding/ takes. */
import { CapfleetError } from '../src/base/error.ts'
import type { DownloadOptions, FrameCondition, FrameField, TimeSource } from './addon.ts'
import { COMPRESSION_LEVELS } from './compression.ts'
import type { NativeOptions } from './engine-binding.ts'

/** Of native/engine/vendor_time/vendor_clock.h. */
export const TIME_SOURCES: Readonly<Record<TimeSource, number>> = {
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
    streams: options.streams.map((stream) => stream.segments),
    growingSegments: options.streams.flatMap(({ growing = [] }) => growing),
    beginNs: options.beginNs,
    endNs: options.endNs,
    frameFilter: (options.frameFilter ?? []).map(toNativeCondition),
    filter: options.filter,
    filterDecap: options.filterDecap ?? false,
    regex: options.regex,
    timeSource: TIME_SOURCES[options.timeSource ?? 'nic'],
    mac48LimitNs: options.mac48LimitNs,
    sliceBytes: options.sliceBytes ?? KEEP_WHOLE_PACKETS,
    tsMaxNs: options.tsMaxNs,
    maxBytes: options.maxBytes,
    maxPackets: options.maxPackets,
    afterBytes: options.afterBytes ?? 0n,
    toMicroseconds: options.timeResolution === 'usec',
    ...COMPRESSION_LEVELS[options.compression],
    emptyLinkType: options.emptyLinkType ?? ETHERNET,
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

const MAX_SLICE_BYTES = 12_288 // stated by the appliance API, section 8
const KEEP_WHOLE_PACKETS = 262_144 // no packet is longer
const MAX_INT64 = 2n ** 63n - 1n
const MAX_UINT32 = 2 ** 32 - 1
const FILE_HEADER_BYTES = 24n
const ETHERNET = 1

/** Of native/engine/filter/frame_filter.h. */
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
  checkRange('mac48LimitNs', options.mac48LimitNs ?? 0n, 0n)
  checkRange('maxBytes', options.maxBytes ?? FILE_HEADER_BYTES, FILE_HEADER_BYTES)
  checkRange('maxPackets', options.maxPackets ?? 1n, 1n)
  checkRange('afterBytes', options.afterBytes ?? 0n, 0n)
  const sliceBytes = options.sliceBytes ?? 1
  if (!Number.isInteger(sliceBytes) || sliceBytes < 1 || sliceBytes > MAX_SLICE_BYTES) {
    throw badParameter('sliceBytes', `must be an integer from 1 to ${MAX_SLICE_BYTES}`)
  }
}

function toNativeCondition({ field, op, values }: FrameCondition): NativeOptions['frameFilter'][number] {
  const isUint32 = (value: number): boolean => Number.isInteger(value) && value >= 0 && value <= MAX_UINT32
  if (values.length === 0 || !values.every(isUint32)) {
    throw badParameter('frameFilter', `needs integers from 0 to ${MAX_UINT32} for ${field}`)
  }
  return { field: FRAME_FIELDS[field], excludes: op === '!=', values }
}

/** 64-bit and signed in the engine. */
function checkRange(param: string, value: bigint, least: bigint): void {
  if (value >= least && value <= MAX_INT64) return
  throw badParameter(param, `must be from ${least} to ${MAX_INT64}, got ${value}`)
}

function badParameter(param: string, rule: string): CapfleetError {
  return new CapfleetError('bad-parameter', `${param} ${rule}`, { param })
}
