import { type LogEntry, SegmentFlag } from '../../native/segment-entry.ts'
import { verifySegment } from '../../native/stored-segments.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import type { ImportWatch } from '../link/import-request.ts'
import type { StoreFinding, VerifiedStore } from '../link/recorder-protocol.ts'
import {
  damagedEntry,
  measuredEntry,
  measuredUnlessDamaged,
  portsOnDisk,
  segmentsOnDisk,
} from '../store/segments-on-disk.ts'
import type { StoredSegmentPlace } from '../store/store-paths.ts'
import { entriesOf, pathOf } from '../store/stored-capture.ts'
import type { HeldCapture } from './writer/held-capture.ts'
import type { StoreWriter } from './writer/store-writer.ts'

const NEVER = new AbortController().signal

/**
 * Checks one finished segment in which a reader met damage, and marks what is lost. Does nothing if the segment does
 * not exist. Fails like verifyStore().
 */
export async function checkSegment(
  writer: StoreWriter,
  { name, port, number }: StoredSegmentPlace,
  { signal = NEVER }: ImportWatch,
): Promise<readonly StoreFinding[]> {
  await writer.load()
  const held = writer.captures.get(name)
  const segment = held?.table.portOf(port)?.find(number)
  if (held === undefined || segment === undefined) return []
  return await verifyOne(writer, held, segment, { repair: true, signal, onChecked: () => undefined })
}

const NO_FINDINGS: readonly StoreFinding[] = []

/**
 * Checks the records, the logs and every finished segment of the store, one after another and at the lowest priority,
 * while the recorder captures and appliances read. With `repair`, everything that can be rebuilt is rebuilt, and what
 * is lost is marked as lost in the segment's index and its capture's log; packets are never changed. It may be
 * interrupted and repeated. Only one at a time may work on a store. Fails with store-full, store-unavailable, or the
 * signal's reason.
 */
export async function verifyStore(
  writer: StoreWriter,
  { repair }: { readonly repair: boolean },
  { signal = NEVER, onProgress }: ImportWatch,
): Promise<VerifiedStore> {
  await writer.load()
  const captures = [...writer.captures.values()]
  const totalInputBytes = captures.reduce((sum, { table }) => sum + table.bytes, 0n)
  const findings: StoreFinding[] = []
  let [inputBytes, packets, segments] = [0n, 0n, 0n]
  for (const held of captures) {
    const { name } = held.record
    const recordFindings = (messages: readonly string[], isRepaired: boolean): StoreFinding[] =>
      messages.map((message) => ({
        ...NO_PACKETS,
        capture: name,
        kind: 'record-damaged',
        message,
        isRepaired,
      }))
    // Problems found when the store was loaded, and since then.
    findings.push(...recordFindings(held.problems, true))
    const found = await held.use(async () => [
      ...recordFindings(await writer.checkRecord(name, { repair }), repair),
      ...(held.table.mayLackDrops ? [lostDrops(name)] : []),
      ...(await findUnlisted(writer, held, { repair })),
    ])
    findings.push(...(found ?? NO_FINDINGS))
    for (const segment of held.table.ports.flatMap((port) => [...entriesOf(port)])) {
      const onChecked = (checked: bigint): void =>
        onProgress?.({ inputBytes: inputBytes + checked, totalInputBytes, packets })
      findings.push(...(await verifyOne(writer, held, segment, { repair, signal, onChecked })))
      inputBytes += segment.bytes
      packets += segment.packets
      segments += 1n
      onProgress?.({ inputBytes, totalInputBytes, packets })
    }
  }
  return { captures: BigInt(captures.length), segments, findings }
}

const NO_PACKETS = { file: '', packets: 0n, bytes: 0n, isMarked: false }

/** The log of a capture that has ended lists every segment. */
async function findUnlisted(
  writer: StoreWriter,
  { record, folder, table }: HeldCapture,
  { repair }: { readonly repair: boolean },
): Promise<readonly StoreFinding[]> {
  const { name, state, startNs, endNs } = record
  if (state === 'active') return []
  const findings: StoreFinding[] = []
  for (const port of await portsOnDisk(folder)) {
    const last = table.portOf(port)?.lastNumber ?? 0
    for (const place of await segmentsOnDisk(folder, port, last)) {
      const measured = await measuredUnlessDamaged(folder, port, place)
      if (measured === undefined) continue
      const isReadable = typeof measured !== 'string'
      const entry = isReadable
        ? measured
        : await damagedEntry(folder, table.portOf(port), { ...place, port, recorded: { startNs, endNs } })
      if (repair) await writer.addSegments(name, [entry])
      const { packets, bytes } = entry
      const file = `${pathOf(folder, entry)}.pcap`
      const why = isReadable ? 'a repair adds it' : `a repair adds it as damaged: ${measured}`
      const message = `the log of the capture does not list this segment; ${why}`
      findings.push({
        capture: name,
        kind: 'segment-unlisted',
        file,
        packets,
        bytes,
        isMarked: false,
        message,
        isRepaired: repair,
      })
    }
  }
  return findings
}

function lostDrops(capture: string): StoreFinding {
  const message = 'a part of the log was lost that may have said how many packets the recording dropped'
  return { ...NO_PACKETS, capture, kind: 'record-damaged', isMarked: true, message, isRepaired: false }
}

interface VerifyOptions {
  readonly repair: boolean
  readonly signal: AbortSignal
  readonly onChecked: (bytes: bigint) => void
}

/** Nothing of a capture that is or was deleted. */
async function verifyOne(
  writer: StoreWriter,
  capture: HeldCapture,
  segment: LogEntry,
  { signal, ...options }: VerifyOptions,
): Promise<readonly StoreFinding[]> {
  const found = await capture.use((isDeleted) =>
    verifyKept(writer, capture, segment, { ...options, signal: AbortSignal.any([signal, isDeleted]) }),
  )
  return found ?? NO_FINDINGS
}

async function verifyKept(
  writer: StoreWriter,
  capture: HeldCapture,
  segment: LogEntry,
  { repair, signal, onChecked }: VerifyOptions,
): Promise<readonly StoreFinding[]> {
  const {
    record: { name },
    folder,
    table,
  } = capture
  const path = pathOf(folder, segment)
  try {
    const known = await knownOf(folder, segment)
    // Its packets are known to be lost, and none of its files has more information.
    if (known === undefined) return [lostSegment(name, path, 'or lists no packets, and is marked as lost')]
    const { findings, isRepaired, ...now } = await verifySegment(path, known, {
      repair,
      signal,
      onProgress: onChecked,
    })
    if (isRepaired)
      await writer.correctSegment(
        capture,
        segment,
        () => ({ ...known, ...now }),
        findings.map(({ file, message }) => `${file}: ${message}`),
      )
    return findings.map((finding) => ({ ...finding, capture: name, isRepaired }))
  } catch (error) {
    if (!(error instanceof CapfleetError)) throw error
    // Retention may have removed it since.
    if (table.portOf(segment.port)?.find(segment.number) === undefined) return []
    if (error.code === 'aged-out') {
      const lost = { ...segment, flags: segment.flags | SegmentFlag.damaged, packets: 0n, bytes: 0n }
      const message = 'and was not removed by capfleet; a repair marks its packets as lost'
      // The files beside it stay: they match the packets, in case these come back.
      if (repair)
        await writer.correctSegment(capture, segment, () => lost, [`${path}.pcap is missing, ${message}`])
      const { packets, bytes } = segment
      return [{ ...lostSegment(name, path, message), packets, bytes, isMarked: false, isRepaired: repair }]
    }
    if (error.code !== 'store-corrupt' && error.code !== 'store-unavailable') throw error
    const { packets, bytes } = segment
    return [
      {
        capture: name,
        kind: 'block-damaged',
        file: path,
        packets,
        bytes,
        isMarked: false,
        message: error.message,
        isRepaired: false,
      },
    ]
  }
}

/** What is known about a segment before its blocks are read; undefined: only that it is lost. */
async function knownOf(folder: string, segment: LogEntry): Promise<LogEntry | undefined> {
  // If all blocks of a segment are marked, the log has no packet, and the bytes of the file.
  if (segment.packets > 0n || segment.bytes > 0n || (segment.flags & SegmentFlag.damaged) === 0)
    return segment
  const { port, number, flags } = segment
  const measured = await measuredEntry(folder, port, {
    number,
    isFlat: (flags & SegmentFlag.flat) !== 0,
  }).catch((error: unknown) => {
    if (error instanceof CapfleetError && error.code === 'store-corrupt') return undefined
    throw error
  })
  return measured && { ...measured, flags }
}

function lostSegment(capture: string, path: string, why: string): StoreFinding {
  const file = `${path}.pcap`
  const message = `${file} is missing, ${why}`
  return { ...NO_PACKETS, capture, kind: 'segment-missing', file, isMarked: true, message, isRepaired: false }
}
