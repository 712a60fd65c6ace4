/** The requests of the packet view: which devices have packets of the selection, and the first of these packets. */
import { RECORD_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'
import { answered, gateway, openAnswer, Problem } from '../base/ask-gateway.ts'
import type { DeviceFailures } from '../base/devices.ts'
import { type Pairs, queryOf, queryText } from '../download/parameter-groups.ts'
import { TEXTS } from '../texts.ts'
import { type LookSize, lookPairs } from './look-parameters.ts'
import { firstOfAll, type Packet, readPackets } from './pcap-packets.ts'
import { decodeZstd } from './zstd-decoder.ts'

/** Parameters that the page sets itself. */
const OWN: ReadonlySet<string> = new Set([
  'Device',
  'MaxPackets',
  'MaxBytes',
  'Slice',
  'Compression',
  'TSResolution',
  'Follow',
  'Digest',
  'OnError',
  'Dedup',
  'DedupBy',
  'Align',
])

/** A device that has packets of the selection. */
export interface Holder {
  readonly device: string
  /** null: unknown, possibly none. */
  readonly packets: string | null
  /** false: the count is of packets before the filters. */
  readonly exact: boolean
}

export interface Estimated {
  readonly holders: readonly Holder[]
  /** Devices for which it is unknown. */
  readonly failures: DeviceFailures
}

export async function askHolders(pairs: Pairs, signal: AbortSignal): Promise<Estimated> {
  const estimate = await answered(
    gateway.GET('/v1/estimate', { params: { query: queryOf<'get_v1_estimate'>(pairs) }, signal }),
  )
  const { devices } = estimate
  return {
    holders: devices.flatMap((device) => ('error' in device || device.packets === '0' ? [] : [device])),
    failures: new Map(
      devices.flatMap((device) => ('error' in device ? [[device.device, device.error]] : [])),
    ),
  }
}

export interface FirstPackets {
  readonly packets: readonly Packet[]
  /** How many packets passed the filters, of each device that was read: at most LookSize.packetsMax. */
  readonly counts: ReadonlyMap<string, number>
  /** Whether the devices that were read have further packets, after these. */
  readonly isCut: boolean
  /** Devices that broke off; none of their packets are included. */
  readonly failures: DeviceFailures
}

/** Each takes a stream of its device, and a browser opens six connections. */
const DEVICES_AT_A_TIME = 6

export interface ReadOptions {
  readonly size: LookSize
  /** Whether to read all devices. Otherwise only as many as are needed to find a packet. */
  readonly isWhole: boolean
  readonly signal: AbortSignal
  /** Receives what has been read so far. */
  readonly onRead: (soFar: FirstPackets) => void
}

/**
 * One download for each device, because a merged file does not show which packet came from where. Fails if all fail.
 */
export async function askPackets(
  pairs: Pairs,
  devices: readonly string[],
  { size, isWhole, signal, onRead }: ReadOptions,
): Promise<FirstPackets> {
  const query = queryText([...pairs.filter(([name]) => !OWN.has(name)), ...lookPairs(size)])
  const counts = new Map<string, number>()
  const failures = new Map<string, { code: string; detail: string }>()
  let packets: readonly Packet[] = []
  let firstFailure: unknown
  let isCut = false
  /** Later packets would be shown without those of a device whose download reached its limit before. */
  let untilNs: bigint | undefined
  for (
    let first = 0;
    first < devices.length && (isWhole || packets.length === 0);
    first += DEVICES_AT_A_TIME
  ) {
    const asked = devices.slice(first, first + DEVICES_AT_A_TIME)
    const results = await Promise.allSettled(
      asked.map((device) => askDevice(device, query, { size, signal })),
    )
    signal.throwIfAborted()
    const lists = results.flatMap((result, index) => {
      const device = asked[index] ?? ''
      if (result.status === 'fulfilled') {
        const { packets: own, isCut: isOwnCut } = result.value
        counts.set(device, own.length)
        const last = own.at(-1)
        if (isOwnCut && last !== undefined && (untilNs === undefined || last.ns < untilNs)) untilNs = last.ns
        return [own]
      }
      firstFailure ??= result.reason
      failures.set(device, failureOf(result.reason))
      return []
    })
    const all = [packets, ...lists]
    const known = all.map((list) => list.filter(({ ns }) => untilNs === undefined || ns <= untilNs))
    packets = firstOfAll(known, size.packetsMax)
    isCut ||= untilNs !== undefined || known.flat().length > packets.length
    onRead({ packets, isCut, counts: new Map(counts), failures: new Map(failures) })
  }
  if (firstFailure !== undefined && counts.size === 0) throw firstFailure
  return { packets, isCut, counts, failures }
}

async function askDevice(
  device: string,
  query: string,
  { size, signal }: Pick<ReadOptions, 'size' | 'signal'>,
): Promise<{ readonly packets: readonly Packet[]; readonly isCut: boolean }> {
  const path = `devices/${encodeURIComponent(device)}/api/v1/pcap/timerange?${query}`
  const answer = await openAnswer(path, { signal })
  const file = await decodeZstd(new Uint8Array(await answer.arrayBuffer()))
  const packets = readPackets(file, device)
  return { packets, isCut: packets.length >= size.packetsMax || isFull(file.length, size) }
}

/** Whether another packet may not have had room. */
function isFull(bytes: number, { bytesMax, sliceBytes }: LookSize): boolean {
  return bytesMax !== undefined && bytes + RECORD_HEADER_BYTES + sliceBytes > bytesMax
}

function failureOf(error: unknown): { code: string; detail: string } {
  if (error instanceof Problem) return { code: error.code, detail: error.message }
  // A browser gives no details about an answer that was cut off.
  return { code: 'cut', detail: TEXTS.inside.answerCut }
}
