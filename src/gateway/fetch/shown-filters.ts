/**
 * Third-party devices do not report what they ignore: one that ignores a filter sends all packets as if they had
 * passed it. So each must first show that it applies the filter: for a moment in which it has packets, a filter that
 * matches nothing must return none. The gateway checks that from time to time, on the stream that the download has
 * leased.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError, type ErrorCode } from '../../shared/base/error.ts'
import { parsePcapHeader } from '../../shared/pcap/pcap-header.ts'
import { PCAP_HEADER_BYTES, RECORD_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'
import { RecordCursor } from '../../shared/pcap/record-cursor.ts'
import type { DeviceClient } from '../device/device-client.ts'
import { deviceProtocol } from '../device/device-failure.ts'
import { FREED_LATE_MS, unknownTo } from '../device/device-kind.ts'
import type { DeviceStream } from '../device/device-stream.ts'
import { MERGE_READ_SIZE } from '../device/read-size.ts'
import type { DownloadStep } from '../fleet/plan.ts'
import { orRefusal } from './possible-refusal.ts'

/** Filters that match no packet, and that every compiler accepts. */
const PASSES_NONE = { FilterBPF: 'less 0', FilterFrame: 'capture.port==0 and capture.port!=0' } as const
type FilterName = keyof typeof PASSES_NONE

/** Parameters that select packets by name and time, where the time of a packet is the device's. */
const RANGE_NAMES = ['StreamName', 'TSBegin', 'TSEnd', 'TSUnit', 'TSZone', 'Start', 'Stop']
/** Devices may truncate times to milliseconds. */
const MOMENT_NS = 1_000_000n
/** Limited, because another appliance may get the address. */
const SHOWN_FOR_MS = 600_000

/** When a device last showed that it applies a filter in downloads of one kind (performance.now()). */
const SHOWN = new WeakMap<DeviceClient, Map<string, number>>()

interface Asking {
  readonly caller: string
  readonly signal: AbortSignal
}

/** nothing: the device has no packet with which to show it, so the download must not return any. */
export type ShownFilters = 'all' | 'nothing'

/** Packets are removed when a device needs room; this is how often to start over with a new first packet. */
const ROUNDS = 3

/**
 * Resolves when the device has shown that it applies the filters of the step. Fails with bad-parameter if it does not
 * support one, with device-protocol if it shows nothing, or like openStream().
 */
export async function awaitShownFilters(
  client: DeviceClient,
  { device, target }: Pick<DownloadStep, 'device' | 'target'>,
  asking: Asking,
): Promise<ShownFilters> {
  const { pathname, searchParams } = new URL(target, 'http://device')
  const shown = SHOWN.get(client) ?? new Map<string, number>()
  SHOWN.set(client, shown)
  const keyOf = (name: FilterName) => `${pathname} ${name}`
  const isLate = (name: FilterName) =>
    performance.now() - (shown.get(keyOf(name)) ?? -Infinity) > SHOWN_FOR_MS
  const names = FILTER_NAMES.filter((name) => searchParams.has(name) && isLate(name))
  if (names.length === 0) return 'all'
  const range = [...searchParams].filter(([name]) => RANGE_NAMES.includes(name))
  const whole = `${pathname}?${joined(range)}`
  for (let round = 0; round < ROUNDS; round++) {
    const firstNs = await firstTimeOf(client, whole, asking)
    if (firstNs === undefined) return 'nothing'
    const moment = momentOf(pathname, searchParams.get('StreamName'), firstNs)
    const isPatient = !pathname.endsWith('/single')
    const ask = async (name: FilterName, tookMs: number) =>
      await answerTo(client, `${moment}&${name}=${encodeURIComponent(PASSES_NONE[name])}`, {
        asking,
        silentMs: isPatient ? undefined : Math.ceil(Math.max(SOON_MS, 4 * tookMs)),
      })
    // The same question without a filter, before and after: it must be the filter that holds the packet back.
    const before = await timed(() => firstTimeOf(client, moment, asking))
    if (before.value === undefined) continue
    const answers = new Map<FilterName, FilterAnswer>()
    for (const name of names) {
      const answer = await ask(name, before.tookMs)
      if (answer === 'packets') throw unknownTo(device, name)
      answers.set(name, answer)
    }
    const after = await timed(() => firstTimeOf(client, moment, asking))
    if (after.value === undefined) continue
    let isShown = true
    for (const [name, answer] of answers) {
      // A refusal or silence may have had another reason, so it must occur twice.
      const again = answer === 'no packets' ? answer : await ask(name, Math.max(before.tookMs, after.tookMs))
      if (again === 'packets') throw unknownTo(device, name)
      isShown &&= again === answer
      if (again === answer && answer !== 'silent') shown.set(keyOf(name), performance.now())
    }
    if (isShown) return 'all'
  }
  throw deviceProtocol(device, 'does not find a packet again by its time, so it cannot show that it filters')
}

/**
 * The request for all packets of a moment in a download of the same kind. For a whole capture there is nothing
 * smaller.
 */
function momentOf(pathname: string, captureName: string | null, firstNs: bigint): string {
  const [from, to] = [String(firstNs), String(firstNs + MOMENT_NS)]
  const name = ['StreamName', captureName ?? ''] as const
  if (pathname.endsWith('/single')) return `${pathname}?${joined([name])}`
  if (pathname.endsWith('/splittime')) return `${pathname}?${joined([name, ['Start', from], ['Stop', to]])}`
  return `${pathname}?${joined([
    ['TSBegin', from],
    ['TSEnd', to],
    ['TSUnit', 'nanos'],
  ])}`
}

function joined(pairs: readonly (readonly [name: string, value: string])[]): string {
  return pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
}

const FILTER_NAMES = Object.keys(PASSES_NONE) as FilterName[]

/**
 * A device that applies the filter may search a whole capture before it answers; one that does not sends its packets
 * sooner.
 */
const SOON_MS = 2_000

/** A device's answer to a filter that matches no packet. */
type FilterAnswer = 'packets' | 'no packets' | 'refused' | 'silent'

/** `silentMs`: how long to wait before the answer counts as silence; undefined: the device must answer. */
async function answerTo(
  client: DeviceClient,
  target: string,
  { asking, silentMs }: { readonly asking: Asking; readonly silentMs: number | undefined },
): Promise<FilterAnswer> {
  const late = silentMs === undefined ? undefined : AbortSignal.timeout(silentMs)
  try {
    const signal = late === undefined ? asking.signal : AbortSignal.any([asking.signal, late])
    const firstNs = await firstTimeOf(client, target, { ...asking, signal })
    return firstNs === undefined ? 'no packets' : 'packets'
  } catch (error) {
    asking.signal.throwIfAborted()
    if (late?.aborted === true) return 'silent'
    if (error instanceof CapfleetError && isOfFilter(error)) return 'refused'
    throw error
  }
}

async function timed<Value>(
  work: () => Promise<Value>,
): Promise<{ readonly value: Value; readonly tookMs: number }> {
  const startMs = performance.now()
  const value = await work()
  return { value, tookMs: performance.now() - startMs }
}

/** A device that rejects the filter has evaluated it. */
function isOfFilter({ code, details }: CapfleetError): boolean {
  return OF_FILTERS.has(code) || details.members?.deviceStatus === 400
}

const OF_FILTERS: ReadonlySet<ErrorCode> = new Set(['bad-parameter', 'bad-bpf', 'bad-frame-filter'])

/** Time of the first packet in nanoseconds since 1970, or undefined if there is none. */
async function firstTimeOf(
  client: DeviceClient,
  target: string,
  asking: Asking,
): Promise<bigint | undefined> {
  return await orRefusal(() => readFirstTime(client, target, asking))
}

async function readFirstTime(
  client: DeviceClient,
  target: string,
  asking: Asking,
): Promise<bigint | undefined> {
  using stream = await openPatiently(client, target, asking)
  const bytes = await firstBytes(stream, PCAP_HEADER_BYTES + RECORD_HEADER_BYTES)
  const header = parsePcapHeader(bytes, `device ${client.device.name}`)
  const first = bytes.subarray(PCAP_HEADER_BYTES)
  const record = new RecordCursor(first, header)
  // Zeros fill a file up.
  return record.hasHeader && first.some((byte) => byte !== 0) ? record.ns : undefined
}

/** The previous stream has only just ended, and the device may notice that late. */
async function openPatiently(client: DeviceClient, target: string, asking: Asking): Promise<DeviceStream> {
  const options = { ...asking, readSize: MERGE_READ_SIZE, mayPause: false, isForced: false }
  for (const pauseMs of FREED_LATE_MS) {
    try {
      return await client.openStream(target, options)
    } catch (error) {
      if (!(error instanceof CapfleetError) || error.code !== 'download-slots-exhausted') throw error
    }
    await delay(pauseMs, undefined, { signal: asking.signal })
  }
  return await client.openStream(target, options)
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
