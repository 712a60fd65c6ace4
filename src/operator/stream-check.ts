/** The questions of `capfleet device check` that take a stream: whether packets come as they should, and are filtered. */
import type { FindingList, Remedy } from '../../appliance/doctor/finding.ts'
import { type DeviceKind, type ForeignKind, isForeign } from '../gateway/device/device-kind.ts'
import { decode } from '../gateway/fetch/encoding/decode.ts'
import { readClaims } from '../gateway/fetch/proof/device-claims.ts'
import { openAfterAnother } from '../gateway/fetch/proof/possible-refusal.ts'
import { awaitShownFilters } from '../gateway/fetch/proof/shown-filters.ts'
import { openSource, type Source } from '../gateway/fetch/stream/source.ts'
import type { SourceBody } from '../gateway/fetch/stream/source-body.ts'
import type { CaptureEntry } from '../gateway/fleet/captures/capture-entry.ts'
import { UNKNOWN_STATE } from '../gateway/fleet/device-identity.ts'
import { PcapInput, SORT_WINDOW } from '../gateway/pcap/pcap-input.ts'
import { CapfleetError } from '../shared/base/error.ts'
import { isCompressed } from '../shared/query/download/query-values.ts'
import { attempt, BUSY_FIX, CALLER, type Check, NS_PER_S, TIMEOUT_MS } from './check-parts.ts'

/** Maximum bytes read from a second of packets. */
const STREAM_BYTES_MAX = 64 * 1_048_576
const NS_PER_MS = 1_000_000n

/** Returns whether the device sends packets as it should. */
export async function checkStream(check: Check, capture: CaptureEntry, kind: DeviceKind): Promise<boolean> {
  const { client, name: device, findings, signal } = check
  const range = `TSBegin=${capture.startNs}&TSEnd=${capture.startNs + NS_PER_S}&TSUnit=nanos`
  const folder = kind === 'legacy' ? '/pcap' : '/api/v1/pcap'
  const step = { device, target: `${folder}/timerange?${range}`, isForced: false }
  const options = { caller: CALLER, signal, startTimeoutMs: TIMEOUT_MS }
  const readFirstSecond = async () => {
    using source = await openSource(client, step, options)
    return await readStream(check, source, { capture, kind })
  }
  const failure = await attempt(async () => {
    const firstNs = await readFirstSecond()
    if (firstNs === undefined || !isForeign(kind)) return
    const moment = `TSBegin=${firstNs}&TSEnd=${firstNs + NS_PER_MS}&TSUnit=nanos`
    const again = { ...step, target: `${folder}/timerange?${moment}` }
    using source = await openAfterAnother(() => openSource(client, again, options), signal)
    await checkMoment(check, source)
  }, signal)
  if (!(failure instanceof CapfleetError)) return true
  const isBusy = failure.code === 'download-slots-exhausted'
  findings.problem('download', {
    detail: failure.message,
    fix: isBusy ? BUSY_FIX : 'its packets cannot be downloaded, and its filters were not tried',
  })
  return false
}

function chunksOf({ device, encoding, body }: Source): SourceBody | AsyncIterator<Uint8Array> {
  return isCompressed(encoding) ? decode({ device, encoding, chunks: body }) : body
}

/** Whether the device finds the packet with which the moment begins. */
async function checkMoment({ name, findings }: Check, source: Source): Promise<void> {
  const input = await PcapInput.open(name, chunksOf(source))
  await input.fill()
  if (input.hasRecord) return findings.ok('times', 'it finds a packet again by its time')
  const fix =
    'it may round times to whole seconds, and packets of ranges that do not begin and end with a second may be missing'
  findings.warn('times', { detail: 'it does not find a packet again by its time', fix })
}

/** Returns the time of the first packet. */
async function readStream(
  { name, findings }: Check,
  source: Source,
  { capture, kind }: { readonly capture: CaptureEntry; readonly kind: DeviceKind },
): Promise<bigint | undefined> {
  const { body, headers } = source
  const isVouched = readClaims(headers).order === 'time'
  // As in a merge.
  const sortWindow = isForeign(kind) && !isVouched ? SORT_WINDOW : undefined
  const input = await PcapInput.open(name, chunksOf(source), { sortWindow })
  let isWhole = true
  for (await input.fill(); input.hasRecord; await input.fill()) {
    input.records.skip(Number.MAX_SAFE_INTEGER, { isHashed: false })
    isWhole = input.figures.bytes < STREAM_BYTES_MAX
    if (!isWhole) break
  }
  const { packets, bytes, outOfOrder } = input.records.arrived()
  findings.ok(
    'download',
    `${packets} packet${packets === 1 ? '' : 's'}, ${bytes} bytes of the first second of ${capture.name}`,
  )
  if (!isWhole) findings.ok('end', `not checked: the answer has more than ${STREAM_BYTES_MAX} bytes`)
  else if (body.end.isUnverified) {
    const detail = 'it closes the connection after the last packet, and sends neither a length nor chunks'
    findings.warn('end', { detail, fix: 'its downloads are "unverified": a cut-off download looks the same' })
  } else findings.ok('end', 'a cut-off download can be told from a complete one')
  findings.ok('timestamps', input.header.nanoseconds ? 'nanoseconds' : 'microseconds')
  if (input.header.isBigEndian)
    findings.ok(
      'byte order',
      'big-endian: a download of it alone is big-endian too, merges and exports are not',
    )
  const { outOfOrder: unsorted } = input.figures
  checkOrder(findings, { outOfOrder, unsorted, packets, isVouched })
  if (kind === 'capfleet') findings.ok('resume', 'it can resume a download (After=)')
  return input.figures.firstNs
}

function checkOrder(
  findings: FindingList,
  found: {
    readonly outOfOrder: number
    /** Packets that a merge cannot sort either. */
    readonly unsorted: number
    readonly packets: number
    readonly isVouched: boolean
  },
): void {
  const { outOfOrder, unsorted, packets, isVouched } = found
  const detail = `${outOfOrder} of ${packets} packets are earlier than a packet before them`
  if (unsorted > 0) {
    const fix = `a merge cannot sort ${unsorted} of them: its file is not in time order there`
    findings.warn('order', { detail, fix })
  } else if (outOfOrder > 0) {
    findings.ok('order', `${detail}, by at most a second: a merge sorts them`)
  } else if (isVouched) findings.ok('order', 'packets are in time order, and the device declares it')
  else findings.ok('order', 'packets were in time order')
}

/** Both operators of FilterFrame. */
const CHECKED_FILTERS: Readonly<Record<string, string>> = { FilterFrame: 'capture.port!=254' }

/** Whether downloads with a filter get what passes it. One stream at a time. */
export async function checkHeeded(
  { client, name: device, findings, signal }: Check,
  { name, startNs }: CaptureEntry,
  kind: ForeignKind,
): Promise<void> {
  const range = `TSBegin=${startNs}&TSEnd=${startNs + NS_PER_S}&TSUnit=nanos`
  const [path, filters] =
    kind === 'legacy'
      ? [`/pcap/single?StreamName=${encodeURIComponent(name)}`, ['FilterBPF']]
      : [`/api/v1/pcap/timerange?${range}`, ['FilterBPF', 'FilterFrame']]
  for (const filter of filters) {
    const step = { device, target: `${path}&${filter}=${CHECKED_FILTERS[filter] ?? ''}` }
    const limits = { startTimeoutMs: TIMEOUT_MS, patienceMs: TIMEOUT_MS }
    const options = { caller: CALLER, signal, state: UNKNOWN_STATE, ...limits }
    const shown = await attempt(
      () => openAfterAnother(() => awaitShownFilters(client, step, options), signal),
      signal,
    )
    if (shown === 'all') findings.ok(filter, 'it leaves out packets that do not match')
    else findings.warn(filter, unshown(filter, shown))
  }
}

function unshown(filter: string, shown: 'nothing' | CapfleetError): Remedy {
  if (shown === 'nothing')
    return { detail: 'it has no packet in that second to show it with', fix: 'check again when it has one' }
  if (shown.code === 'download-slots-exhausted') return { detail: shown.message, fix: BUSY_FIX }
  const isIgnored = shown.code === 'bad-parameter'
  const detail = isIgnored ? `it ignores ${filter}, and sends packets that do not match` : shown.message
  return { detail, fix: `downloads with ${filter} are rejected` }
}
