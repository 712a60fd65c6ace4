/**
 * How a piece of an export's time is fetched: in one go if it is small, or if its packets cannot be separated by time;
 * else in windows, for which the file header must be known beforehand.
 */
import { callerLabel } from '../../gateway/device/device-request.ts'
import { type ExportOrder, isDivisible } from '../../gateway/export/export-order.ts'
import type { Measured } from '../../gateway/export/export-record.ts'
import type { FetchParts } from '../../gateway/fetch/body/fetch-download.ts'
import { FetchedDownload } from '../../gateway/fetch/body/fetch-download.ts'
import type { BoundedQuery } from '../../gateway/fleet/plan/within-bounds.ts'
import { estimateDevice } from '../../gateway/fleet/questions/device-estimate.ts'
import { commonHeader } from '../../gateway/pcap/common-header.ts'
import { JoinedSignal } from '../../shared/base/joined-signal.ts'
import { type PcapHeader, parsePcapHeader } from '../../shared/pcap/pcap-header.ts'
import { MAX_CAPTURED_LENGTH, PCAP_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'
import { spanPlan } from './fetch-span.ts'

export interface Measuring {
  readonly order: ExportOrder
  /** What is requested from the devices in this piece. */
  readonly query: BoundedQuery
  /** The devices that are read. */
  readonly devices: readonly string[]
  /** Target size of a span. */
  readonly spanBytes: number
  readonly estimateTimeoutMs: number
  readonly waitMs: number
  /** A name for leases. */
  readonly id: string
  /** Set if holes of files are being filled. */
  readonly filled?: FilledPiece | undefined
  readonly signal: AbortSignal
}

/** What already exists of a piece that is being filled. */
export interface FilledPiece {
  /** Number of ranges of its time that are fetched separately. */
  readonly ranges: number
  /** Packets in its files. */
  readonly packets: bigint
  /** Bytes of its files. */
  readonly bytes: bigint
  readonly header: () => Promise<PcapHeader>
}

export interface MeasuredPiece extends Omit<Measured, 'leftOut'> {
  /** What all devices have of it before compression, or undefined if not all of them reported it. */
  readonly bytes: bigint | undefined
  /** Whether it will be exactly that much. */
  readonly isExact: boolean
}

/** Fails like a download if it has to fetch the header. */
export async function measurePiece(parts: FetchParts, measuring: Measuring): Promise<MeasuredPiece> {
  const { order, query, devices, spanBytes, filled } = measuring
  const estimates = await Promise.all(devices.map((device) => estimate(parts, measuring, device)))
  const known = estimates.filter((one) => one !== undefined)
  const largest = known.reduce((most, { bytes }) => (bytes > most ? bytes : most), 0n)
  const isComplete = known.length === devices.length
  const bytes = isComplete ? known.reduce((sum, one) => sum + one.bytes, 0n) : undefined
  const isExact = isComplete && known.every(({ exact }) => exact)
  const rangeNs = query.endNs - query.beginNs
  const whole = { header: null, stepNs: String(rangeNs), bytes, isExact }
  const windows = (largest + BigInt(spanBytes) - 1n) / BigInt(spanBytes)
  const isDivided = windows > 1n && isDivisible(order, query) && rangeNs >= windows
  if (!isDivided && (filled?.ranges ?? 1) === 1) return whole
  const { header, isByTime } = await headerOf(parts, measuring)
  if (isDivided && isByTime) return { ...whole, header, stepNs: String((rangeNs + windows - 1n) / windows) }
  // The ranges of holes are separate, whatever the order of packets within one.
  return filled === undefined ? whole : { ...whole, header }
}

/** What a device has that does not report it only shows when it is fetched. */
async function estimate(
  { fleet }: FetchParts,
  { query, order, estimateTimeoutMs, signal }: Measuring,
  device: string,
): Promise<{ readonly bytes: bigint; readonly exact: boolean } | undefined> {
  using limit = new JoinedSignal([signal], estimateTimeoutMs)
  try {
    const asking = { caller: callerLabel(order.user), signal: limit.signal }
    return await estimateDevice(fleet.get(device), query, asking)
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

interface Begin {
  readonly name: string
  readonly header: PcapHeader
  /** Whether the device says that its packets are in time order. */
  readonly isByTime: boolean
  readonly hasPackets: () => Promise<boolean>
}

interface AgreedHeader {
  /** The PCAP header for the file. */
  readonly header: PcapHeader
  /** Whether all devices guarantee the order of their packets. */
  readonly isByTime: boolean
}

async function headerOf(parts: FetchParts, measuring: Measuring): Promise<AgreedHeader> {
  const begins = await beginOfFiles(measuring)
  for (const device of measuring.devices) begins.push(await beginOf(parts, measuring, device))
  const isByTime = begins.every((begin) => begin.isByTime)
  const [first] = begins
  if (begins.every(({ header }) => header.linkType === first?.header.linkType))
    return { header: commonHeader(begins), isByTime }
  // A device without packets does not count for the link type.
  const told: Begin[] = []
  for (const begin of begins) if (await begin.hasPackets()) told.push(begin)
  return { header: commonHeader(told.length > 0 ? told : begins.slice(0, 1)), isByTime }
}

async function beginOfFiles({ filled, query }: Measuring): Promise<Begin[]> {
  if (filled === undefined) return []
  const hasPackets = async () => filled.packets > 0n
  const header = query.format === 'pcapng' ? HEADER_OF_PCAPNG : await filled.header()
  return [{ name: 'the export', header, isByTime: true, hasPackets }]
}

/** A file in pcapng may have any link types, and needs no common header. */
const HEADER_OF_PCAPNG = { linkType: 1, snaplen: MAX_CAPTURED_LENGTH, nanoseconds: true }

async function beginOf(parts: FetchParts, measuring: Measuring, device: string): Promise<Begin> {
  await using fetched = await openAt(parts, measuring, device, measuring.query)
  using body = fetched.body
  const isByTime = body.facts.claims.order === 'time'
  const isPcapng = measuring.query.format === 'pcapng'
  if (isPcapng) return { name: device, header: HEADER_OF_PCAPNG, isByTime, hasPackets: async () => true }
  let bytes: Uint8Array = Buffer.alloc(0)
  for await (const chunk of body.chunks) {
    bytes = Buffer.concat([bytes, chunk])
    if (bytes.length >= PCAP_HEADER_BYTES) break
  }
  return {
    name: device,
    header: parsePcapHeader(bytes, device),
    isByTime,
    hasPackets: () => hasPackets(parts, measuring, device),
  }
}

async function hasPackets(parts: FetchParts, measuring: Measuring, device: string): Promise<boolean> {
  await using fetched = await openAt(parts, measuring, device, { ...measuring.query, maxPackets: 1n })
  using body = fetched.body
  let bytes = 0
  for await (const chunk of body.chunks) bytes += chunk.length
  return bytes > PCAP_HEADER_BYTES
}

function openAt(
  parts: FetchParts,
  { order, id, waitMs, signal, filled }: Measuring,
  device: string,
  query: BoundedQuery,
): Promise<FetchedDownload> {
  const ending = new AbortController()
  const limit = AbortSignal.any([signal, ending.signal])
  const deviceKind = parts.fleet.kindOf(device)
  const plan = spanPlan(order, query, { device, deviceKind, isFill: filled !== undefined })
  return FetchedDownload.open(plan, parts, {
    id: `${id}-${device}`,
    user: order.user,
    class: 'bulk',
    waitMs,
    options: { onError: 'fail', align: false },
    signal: limit,
    onPosition: () => undefined,
    onWaited: () => undefined,
    onLost: (reason) => ending.abort(reason),
  })
}
