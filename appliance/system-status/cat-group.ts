/**
 * Group "cat" of the system status: the running downloads by slot. The gateway
 * relies on cat_EnableCnt being exactly their number.
 */
import type { Reader } from '../downloads/stream-limit.ts'
import type { ReaderFigures } from './reader-rates.ts'
import { GroupBuilder, type Reading, type StatusGroup } from './status-group.ts'

export interface CatReadings {
  readonly readersBySlot: ReadonlyMap<number, Reader>
  readonly figuresOf: (reader: Reader) => ReaderFigures
}

const READERS = 8 // number of members, fixed by the API; the device has four slots
/** A range may cover thousands of captures. */
const NAMES_SHOWN = 8
const BITS_PER_BYTE = 8
const GIGA = 1e9
const MEGA = 1e6

/** Members that only special capture hardware has values for. */
const HARDWARE_ONLY = ['CPUMain', 'CPUIdle', 'CPUFetch', 'CPUProcess', 'CPUSend', 'IOPriority', 'ChunkID']

export function catGroup({ readersBySlot, figuresOf }: CatReadings): StatusGroup {
  const group = new GroupBuilder()
  const all: Traffic[] = []
  for (let slot = 0; slot < READERS; slot++) {
    const reader = readersBySlot.get(slot)
    const figures = reader && figuresOf(reader)
    const traffic = trafficOf(figures)
    all.push(traffic)
    setMembers(group, `cat_${slot}`, { ...readerMembers(reader, figures), ...trafficMembers(traffic) })
    for (const name of HARDWARE_ONLY) group.read(`cat_${slot}_${name}`, undefined, 0)
  }
  group.set('cat_EnableCnt', readersBySlot.size)
  setMembers(group, 'cat', trafficMembers(all.reduce(added, NO_TRAFFIC)))
  return group.build()
}

interface Traffic {
  readonly readPackets: bigint
  readonly readBytes: bigint
  readonly readTotalPackets: bigint
  readonly readTotalBytes: bigint
  readonly writePackets: bigint
  readonly writeBytes: bigint
  readonly writeTotalPackets: bigint
  readonly writeTotalBytes: bigint
}

const NO_TRAFFIC: Traffic = {
  readPackets: 0n,
  readBytes: 0n,
  readTotalPackets: 0n,
  readTotalBytes: 0n,
  writePackets: 0n,
  writeBytes: 0n,
  writeTotalPackets: 0n,
  writeTotalBytes: 0n,
}

/** Figures without "Total" are per second. */
function trafficOf(figures: ReaderFigures | undefined): Traffic {
  if (figures === undefined) return NO_TRAFFIC
  const { perSecond, totals } = figures
  return {
    readPackets: perSecond.readPackets,
    readBytes: perSecond.readBytes,
    readTotalPackets: totals.readPackets,
    readTotalBytes: totals.readBytes,
    writePackets: perSecond.writtenPackets,
    writeBytes: perSecond.writtenBytes,
    writeTotalPackets: totals.writtenPackets,
    writeTotalBytes: totals.writtenBytes,
  }
}

function added(a: Traffic, b: Traffic): Traffic {
  return {
    readPackets: a.readPackets + b.readPackets,
    readBytes: a.readBytes + b.readBytes,
    readTotalPackets: a.readTotalPackets + b.readTotalPackets,
    readTotalBytes: a.readTotalBytes + b.readTotalBytes,
    writePackets: a.writePackets + b.writePackets,
    writeBytes: a.writeBytes + b.writeBytes,
    writeTotalPackets: a.writeTotalPackets + b.writeTotalPackets,
    writeTotalBytes: a.writeTotalBytes + b.writeTotalBytes,
  }
}

type Members = Readonly<Record<string, Reading>>

function trafficMembers(traffic: Traffic): Members {
  return {
    ReadPkt: traffic.readPackets,
    ReadByte: traffic.readBytes,
    ReadTotalPkt: traffic.readTotalPackets,
    ReadTotalByte: traffic.readTotalBytes,
    ReadGbps: (Number(traffic.readBytes) * BITS_PER_BYTE) / GIGA,
    ReadMpps: Number(traffic.readPackets) / MEGA,
    WritePkt: traffic.writePackets,
    WriteByte: traffic.writeBytes,
    WriteTotalPkt: traffic.writeTotalPackets,
    WriteTotalByte: traffic.writeTotalBytes,
    WriteGbps: (Number(traffic.writeBytes) * BITS_PER_BYTE) / GIGA,
    WriteMpps: Number(traffic.writePackets) / MEGA,
  }
}

function readerMembers(reader: Reader | undefined, figures: ReaderFigures | undefined): Members {
  const totals = reader?.totals?.()
  const produced = totals?.outputBytes ?? 0n
  const pending = reader !== undefined && produced > reader.bytes ? produced - reader.bytes : 0n
  return {
    Enable: reader !== undefined,
    Mode: reader?.mode ?? '',
    CmdLine: reader?.commandLine ?? '',
    StreamName: reader?.captures.slice(0, NAMES_SHOWN).join(' ') ?? '',
    FilterBPF: reader?.filter ?? '',
    /** Timestamp of the last packet returned. */
    TSPCAP: totals?.lastNs ?? 0n,
    PendingByte: pending,
    PktDiscard: figures?.perSecond.discardedPackets ?? 0n,
    PktDiscardTotal: figures?.totals.discardedPackets ?? 0n,
    PktSlice: reader?.sliceBytes ?? 0,
  }
}

function setMembers(group: GroupBuilder, prefix: string, members: Members): void {
  for (const [suffix, value] of Object.entries(members)) group.set(`${prefix}_${suffix}`, value)
}
