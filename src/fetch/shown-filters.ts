/**
 * Devices of other makers say nothing of what they pass over: one that does not heed a filter sends all packets as if they had
 * passed it. So each has to show first that it heeds it: of a moment in which it has packets, none may pass a filter that none can
 * pass. A gateway asks that once in a while, with the stream that the download has a lease for.
 */
import { CapfleetError, type ErrorCode } from '../base/error.ts'
import type { DeviceClient } from '../device/device-client.ts'
import { deviceProtocol } from '../device/device-failure.ts'
import { unknownTo } from '../device/device-kind.ts'
import type { DeviceStream } from '../device/device-stream.ts'
import { MERGE_READ_SIZE } from '../device/read-size.ts'
import type { DownloadStep } from '../fleet/plan.ts'
import { PCAP_HEADER_BYTES, parsePcapHeader, RECORD_HEADER_BYTES } from '../pcap/pcap-header.ts'

/** Filters that no packet passes, and that every compiler takes. */
const PASSES_NONE = { FilterBPF: 'less 0', FilterFrame: 'capture.port==0 and capture.port!=0' } as const
type FilterName = keyof typeof PASSES_NONE

/** What chooses packets by name and time; the time of a packet is that of the device. */
const RANGE_NAMES = ['StreamName', 'TSBegin', 'TSEnd', 'TSUnit', 'TSZone', 'Start', 'Stop']
/** Devices may cut times to milliseconds. */
const MOMENT_NS = 1_000_000n
/** Another appliance may come to the address. */
const SHOWN_FOR_MS = 600_000

/** When a device has shown that it heeds the filter (performance.now()). */
const SHOWN = new WeakMap<DeviceClient, Map<FilterName, number>>()

interface Asking {
  readonly caller: string
  readonly signal: AbortSignal
}

/**
 * Resolves when the device heeds the filters of the step, or has no packet that they could leave out. Fails with bad-parameter
 * when it does not know one, with device-protocol when it shows nothing, or as openStream().
 */
export async function awaitShownFilters(
  client: DeviceClient,
  { device, target }: Pick<DownloadStep, 'device' | 'target'>,
  asking: Asking,
): Promise<void> {
  const { pathname, searchParams } = new URL(target, 'http://device')
  const shown = SHOWN.get(client) ?? new Map<FilterName, number>()
  const isLate = (name: FilterName) => performance.now() - (shown.get(name) ?? -Infinity) > SHOWN_FOR_MS
  const names = FILTER_NAMES.filter((name) => searchParams.has(name) && isLate(name))
  if (names.length === 0) return
  const range = [...searchParams].filter(([name]) => RANGE_NAMES.includes(name))
  const firstNs = await firstTimeOf(client, `${pathname}?${joined(range)}`, asking)
  if (firstNs === undefined) return
  const moment = momentOf(pathname, searchParams.get('StreamName'), firstNs)
  if ((await firstTimeOf(client, moment, asking)) === undefined)
    throw deviceProtocol(
      device,
      'does not find a packet again by its time, so that it cannot show that it filters',
    )
  for (const name of names) {
    if (await sendsAll(client, `${moment}&${name}=${encodeURIComponent(PASSES_NONE[name])}`, asking))
      throw unknownTo(device, name)
    shown.set(name, performance.now())
  }
  SHOWN.set(client, shown)
}

/** What asks for all packets of a moment: where there are no paths below /api/v1/, filters are known of captures alone. */
function momentOf(pathname: string, captureName: string | null, firstNs: bigint): string {
  const [from, to] = [String(firstNs), String(firstNs + MOMENT_NS)]
  if (captureName === null || !pathname.startsWith('/pcap/'))
    return `/api/v1/pcap/timerange?${joined([
      ['TSBegin', from],
      ['TSEnd', to],
      ['TSUnit', 'nanos'],
    ])}`
  return `/pcap/splittime?${joined([
    ['StreamName', captureName],
    ['Start', from],
    ['Stop', to],
  ])}`
}

function joined(pairs: readonly (readonly [name: string, value: string])[]): string {
  return pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
}

const FILTER_NAMES = Object.keys(PASSES_NONE) as FilterName[]
async function sendsAll(client: DeviceClient, target: string, asking: Asking): Promise<boolean> {
  try {
    return (await firstTimeOf(client, target, asking)) !== undefined
  } catch (error) {
    if (error instanceof CapfleetError && isOfFilter(error)) return false
    throw error
  }
}

/** A device that refuses the filter has looked at it. */
function isOfFilter({ code, details }: CapfleetError): boolean {
  return OF_FILTERS.has(code) || details.members?.deviceStatus === 400
}

const OF_FILTERS: ReadonlySet<ErrorCode> = new Set(['bad-parameter', 'bad-bpf', 'bad-frame-filter'])

/** Of the first packet, in nanoseconds since 1970; undefined: there is none. */
async function firstTimeOf(
  client: DeviceClient,
  target: string,
  asking: Asking,
): Promise<bigint | undefined> {
  const options = { ...asking, readSize: MERGE_READ_SIZE, mayPause: false, isForced: false }
  using stream = await client.openStream(target, options)
  const bytes = await firstBytes(stream, PCAP_HEADER_BYTES + RECORD_HEADER_BYTES)
  const { nanoseconds, isBigEndian } = parsePcapHeader(bytes, `device ${client.device.name}`)
  const record = bytes.subarray(PCAP_HEADER_BYTES)
  // Zeros fill a file up.
  if (record.length < RECORD_HEADER_BYTES || record.every((byte) => byte === 0)) return undefined
  const numberAt = (at: number) => (isBigEndian ? record.readUInt32BE(at) : record.readUInt32LE(at))
  const [seconds, fraction] = [numberAt(0), numberAt(4)]
  return BigInt(seconds) * 1_000_000_000n + BigInt(fraction) * (nanoseconds ? 1n : 1_000n)
}

async function firstBytes(stream: DeviceStream, count: number): Promise<Buffer> {
  let bytes: Buffer = Buffer.alloc(0)
  while (bytes.length < count) {
    const read = await stream.next()
    if (read === undefined) break
    bytes = Buffer.concat([bytes, ...read.data])
    read.release()
  }
  return bytes.subarray(0, count)
}
