/**
 * What a download in pcapng consists of beside its packets, which the engine writes: the section's header, the
 * interfaces, and the statistics with the comment that ends the file.
 */
import { basename, dirname } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import type { Chunk, DownloadTotals } from '../../native/addon.ts'
import type {
  PcapngInterface,
  PcapngParts,
  PcapngRemark,
  StreamFiles,
} from '../../native/download-options.ts'
import { LOG_ENTRY_BYTES, type LogEntry, readLogEntry } from '../../native/segment-entry.ts'
import { typeOfWord } from '../../src/shared/pcap/link-types.ts'
import { MAX_CAPTURED_LENGTH } from '../../src/shared/pcap/pcap-sizes.ts'
import {
  countOption,
  IN_NANOSECONDS,
  interfaceDescription,
  interfaceStatistics,
  optionBytes,
  PcapngOption,
  sectionHeader,
  textOption,
} from '../../src/shared/pcap/pcapng-blocks.ts'
import { endComment } from '../../src/shared/pcap/pcapng-end.ts'
import type { DownloadQuery } from '../../src/shared/query/download/download-query.ts'
import {
  filterOptions,
  queryComment,
  softwareOptions,
} from '../../src/shared/query/download/pcapng-comments.ts'
import { type Encoding, encodingOf } from '../../src/shared/query/download/query-values.ts'
import { rfc3339Of } from '../../src/shared/query/time/query-time.ts'
import type { TimeSpan } from '../store/removed-spans.ts'
import { NO_TOTALS } from './followed-totals.ts'
import { type LostPackets, NOTHING_LOST } from './lost-packets.ts'
import type { PreparedDownload } from './prepare-download.ts'
import type { PacketSource } from './send-download.ts'

/** The device as the file names it. */
export interface PcapngDevice {
  readonly deviceName: string
  readonly model: string
  readonly serial: string
}

export interface PcapngBodyOptions {
  readonly device: PcapngDevice
  /** The query of the whole download. */
  readonly query: DownloadQuery
  /** Whether the filter is not the caller's own, who must not learn what it says. */
  readonly isForced: boolean
}

type PreparedFile = Pick<
  PreparedDownload,
  'selection' | 'describedStreams' | 'describedPorts' | 'agedOutBeforeNs' | 'lost'
>

/** A capture port with packets of one link type, which is an interface of the file. */
interface PortOfFile {
  readonly port: number
  readonly linkType: number
  /** The capture of its first packets. */
  readonly captureName: string
  /** The earliest time that its packets may have in the range. */
  readonly fromNs: bigint
}

/** Of more gaps the longest are named, and of more captures with drops, and damaged segments, the first. */
const LOSSES_MAX = 100
/** Ends the options of a packet that has a remark. */
const END_OF_OPTIONS_BYTES = 4
const ETHERNET = 1
const UINT64_MAX = 2n ** 64n - 1n
const LATEST_NS = 2n ** 63n - 1n

/**
 * A pcapng file while it is produced, by one engine download or, if it follows, by one after another. Its bytes depend
 * only on the query and on what is stored, so that it can be continued.
 */
export class PcapngBody {
  readonly #options: PcapngBodyOptions
  /** In the order of their numbers. */
  #interfaces: readonly PcapngInterface[] = []
  #snaplen: number | undefined
  /** Link type of the interface of a file without packets. */
  #linkType = 0
  #head: Buffer | undefined
  #described = 0
  /** How many of the interfaces the file describes even if they have no packets. */
  #announced: number | undefined
  #lost = NOTHING_LOST
  /** The engine's download that was opened last. */
  #last: Pick<PacketSource, 'totals'> | undefined

  constructor(options: PcapngBodyOptions) {
    this.#options = options
  }

  /** What the engine needs for the next part of the file. */
  partsFor(prepared: PreparedFile): PcapngParts {
    const { selection, describedStreams, describedPorts = [] } = prepared
    const { query, isForced } = this.#options
    const streams = describedStreams ?? selection.streams
    const beginNs = describedStreams === undefined ? query.beginNs : 0n
    this.#linkType = typeOfWord(selection.linkType)
    const snaplen = isForced ? MAX_CAPTURED_LENGTH : snaplenOf(streams)
    this.#snaplen ??= Math.min(snaplen, query.sliceBytes ?? MAX_CAPTURED_LENGTH)
    const ports = portsOf(streams, beginNs)
    this.#number(isForced ? inFixedOrder(ports, describedPorts) : ports)
    this.#described = this.#last?.totals().pcapng?.describedInterfaces ?? this.#described
    this.#head ??= this.#newHead(prepared)
    const { gaps, interruptions, drops, damaged } = prepared.lost ?? NOTHING_LOST
    this.#lost = {
      ...NOTHING_LOST,
      drops: drops.slice(0, LOSSES_MAX),
      // A download that follows would have to find out about them while it waits.
      ...(query.follow
        ? {}
        : {
            gaps: longest(gaps),
            interruptions: longest(interruptions),
            damaged: damaged.slice(0, LOSSES_MAX),
          }),
    }
    // Of a limited file the others may have filled the room before a later port appears.
    if (query.maxBytes === undefined) this.#announced = this.#interfaces.length
    else this.#announced ??= this.#interfaces.length
    const remarks = this.#lost.gaps.map(remarkOf)
    return {
      head: this.#head,
      interfaces: this.#interfaces,
      described: this.#described,
      remarks,
      otherBytes:
        this.#head.length +
        sumOf(this.#interfaces.slice(this.#described), ({ description }) => description.length) +
        sumOf(remarks, ({ options }) => options.length + END_OF_OPTIONS_BYTES) +
        this.#longestClosing(),
    }
  }

  /** Bytes of the longest closing in which every interface has been described, and every gap is with a packet. */
  #longestClosing(): number {
    const pcapng = {
      interfacePackets: [],
      describedInterfaces: this.#interfaces.length,
      remarkedPackets: this.#lost.gaps.length,
      leftToSkip: 0n,
    }
    const counts = { packets: UINT64_MAX, corruptBlocks: UINT64_MAX, nextNs: LATEST_NS }
    return this.closing({ ...NO_TOTALS, ...counts, truncated: true, pcapng }).length
  }

  /** Remembers the download that was opened with the parts. */
  opened(download: Pick<PacketSource, 'totals'>): void {
    this.#last = download
  }

  /**
   * Whether the end of the file may name damage that was not known at its beginning. With MaxBytes there may be no room
   * for it, and under a forced filter it is not named.
   */
  get mayNameDamage(): boolean {
    const { query, isForced } = this.#options
    return query.maxBytes === undefined && !query.follow && !isForced
  }

  /** Names the damage, as later files do. REQUIRES: mayNameDamage. */
  nameDamage({ damaged }: Pick<LostPackets, 'damaged'>): void {
    this.#lost = { ...this.#lost, damaged: damaged.slice(0, LOSSES_MAX) }
  }

  /** The blocks after the last packet. `totals` are those of the whole file. */
  closing(totals: DownloadTotals): Buffer {
    const { interfacePackets = [], describedInterfaces = 0, remarkedPackets = 0 } = totals.pcapng ?? {}
    const comments = [
      endComment({ ...totals, nextNs: totals.truncated ? totals.nextNs : undefined, lacks: [] }),
      ...this.#lost.gaps.slice(remarkedPackets).map(gapText),
      ...this.#lost.interruptions.map(gapText),
      ...this.#lost.damaged.map(damageText),
      ...this.#lost.drops.map(dropText),
    ].map((text) => textOption(PcapngOption.comment, text))
    const shown = Math.max(describedInterfaces, this.#announced ?? 0)
    const missing = this.#interfaces.slice(describedInterfaces, shown).map(({ description }) => description)
    const blocks: Uint8Array[] = [...missing]
    if (shown === 0) blocks.push(this.#describeNone())
    const last = Math.max(1, shown) - 1
    const atNs = totals.lastNs ?? this.#options.query.beginNs
    for (let interfaceNumber = 0; interfaceNumber <= last; interfaceNumber++) {
      const delivered = interfacePackets[interfaceNumber] ?? 0n
      blocks.push(
        interfaceStatistics({ interfaceNumber, atNs }, [
          countOption(PcapngOption.statisticsDelivered, delivered),
          ...(interfaceNumber === last ? comments : []),
        ]),
      )
    }
    return Buffer.concat(blocks)
  }

  /** Numbers those that have no number yet. */
  #number(ports: readonly PortOfFile[]): void {
    const isKnown = ({ port, linkType }: PortOfFile) =>
      this.#interfaces.some((one) => one.port === port && one.linkType === linkType)
    const added = ports.filter((one) => !isKnown(one))
    this.#interfaces = [
      ...this.#interfaces,
      ...added.map((one) => ({
        port: one.port,
        linkType: one.linkType,
        description: this.#describe(one),
      })),
    ]
  }

  /**
   * The section's header, and the description of the first interface if it is known: some programs show nothing of a
   * file before they have read one.
   */
  #newHead({ agedOutBeforeNs }: Pick<PreparedDownload, 'agedOutBeforeNs'>): Buffer {
    const { device, query, isForced } = this.#options
    const shown = isForced ? { ...query, filterBpf: undefined } : query
    const serial = device.serial === '' ? '' : `, serial ${device.serial}`
    const agedOut =
      agedOutBeforeNs === undefined ? [] : [`packets before ${agedOutBeforeNs} ns have aged out`]
    const header = sectionHeader([
      textOption(PcapngOption.comment, [queryComment(shown, { isForced }), ...agedOut].join('\n')),
      textOption(PcapngOption.sectionHardware, `${device.deviceName} (${device.model}${serial})`),
      ...softwareOptions(),
    ])
    const [first] = this.#interfaces
    if (first === undefined) return header
    this.#described = 1
    return Buffer.concat([header, first.description])
  }

  #describe({ port, linkType, captureName }: PortOfFile): Buffer {
    const { query, isForced } = this.#options
    return interfaceDescription({ linkType, snaplen: this.#snaplen ?? MAX_CAPTURED_LENGTH }, [
      textOption(PcapngOption.interfaceName, `${this.#options.device.deviceName}:cap${port}`),
      ...(isForced ? [] : [textOption(PcapngOption.interfaceDescription, `capture ${captureName}`)]),
      IN_NANOSECONDS,
      ...(isForced ? [] : filterOptions(query.filterBpf)),
    ])
  }

  /** A file needs an interface, even one without packets. */
  #describeNone(): Buffer {
    const snaplen = this.#snaplen ?? MAX_CAPTURED_LENGTH
    return interfaceDescription({ linkType: this.#linkType, snaplen }, [
      textOption(PcapngOption.interfaceName, `${this.#options.device.deviceName}:capture`),
      IN_NANOSECONDS,
    ])
  }
}

/**
 * The ports of the streams, for each link type that they have, in the order of their first packets: of a range that is
 * asked for again while it grows, the interfaces keep their numbers.
 */
function portsOf(streams: readonly StreamFiles[], beginNs: bigint): readonly PortOfFile[] {
  const ports = new Map<string, PortOfFile>()
  for (const { port, folder, segments } of streams) {
    const captureName = basename(dirname(folder))
    for (const { linkType: word, minNs } of logEntries(segments)) {
      const linkType = typeOfWord(word)
      const key = `${port} ${linkType}`
      const fromNs = minNs > beginNs ? minNs : beginNs
      const known = ports.get(key)
      if (known === undefined || fromNs < known.fromNs)
        ports.set(key, { port, linkType, captureName, fromNs })
    }
  }
  const byTime = (a: PortOfFile, b: PortOfFile) => Number(a.fromNs > b.fromNs) - Number(a.fromNs < b.fromNs)
  return [...ports.values()].sort((a, b) => byTime(a, b) || a.port - b.port || a.linkType - b.linkType)
}

/**
 * The ports by number, with `more` of which none is known yet: neither the order of first packets nor the first packet
 * of a port shows.
 */
function inFixedOrder(ports: readonly PortOfFile[], more: readonly number[]): readonly PortOfFile[] {
  const added = more
    .filter((port) => !ports.some((one) => one.port === port))
    .map((port) => ({ port, linkType: ETHERNET, captureName: '', fromNs: 0n }))
  return [...ports, ...added].sort((a, b) => a.port - b.port || a.linkType - b.linkType)
}

/** The largest of all segments, because programs expect the same one of every interface. */
function snaplenOf(streams: readonly StreamFiles[]): number {
  let largest = 0
  for (const { segments } of streams)
    for (const { snaplen } of logEntries(segments))
      largest = Math.max(largest, snaplen === 0 ? MAX_CAPTURED_LENGTH : snaplen)
  return largest === 0 ? MAX_CAPTURED_LENGTH : largest
}

function* logEntries(segments: Uint8Array): Generator<LogEntry> {
  const entries = Buffer.from(segments.buffer, segments.byteOffset, segments.byteLength)
  for (let at = 0; at < entries.length; at += LOG_ENTRY_BYTES) yield readLogEntry(entries, at)
}

function sumOf<Item>(items: readonly Item[], bytesOf: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + bytesOf(item), 0)
}

function longest(gaps: readonly TimeSpan[]): readonly TimeSpan[] {
  if (gaps.length <= LOSSES_MAX) return gaps
  const ofLength = ({ beginNs, endNs }: TimeSpan) => endNs - beginNs
  const kept = gaps.toSorted((a, b) => Number(ofLength(b) - ofLength(a))).slice(0, LOSSES_MAX)
  return kept.sort((a, b) => Number(a.beginNs - b.beginNs))
}

/** A comment of the first packet after the gap. */
function remarkOf(gap: TimeSpan): PcapngRemark {
  return { atNs: gap.endNs, options: optionBytes([textOption(PcapngOption.comment, gapText(gap))]) }
}

function gapText({ beginNs, endNs }: TimeSpan): string {
  return `capfleet gap: nothing was recorded from ${rfc3339Of(beginNs)} to ${rfc3339Of(endNs)}`
}

function damageText({ port, beginNs, endNs }: LostPackets['damaged'][number]): string {
  const span = `${rfc3339Of(beginNs)} and ${rfc3339Of(endNs)}`
  return `capfleet damage: some packets of cap${port} between ${span} are lost, because blocks are damaged`
}

function dropText({ captureName, ring, disk }: LostPackets['drops'][number]): string {
  const where = `${ring} in the kernel's ring, ${disk} because of the disk`
  return `capfleet drops: capture ${captureName} could not store ${ring + disk} packets: ${where}`
}

export interface PcapngSourceOptions {
  readonly body: PcapngBody
  readonly compression: DownloadQuery['compression']
  /** What is missing, with the damage that was found by reading. */
  readonly findLost: () => Promise<Pick<LostPackets, 'damaged'>>
}

/** A download in pcapng: the packets of the engine, then the blocks that end the file. */
export class PcapngSource implements PacketSource {
  readonly #packets: PacketSource
  readonly #options: PcapngSourceOptions
  #closing: Buffer | undefined

  constructor(packets: PacketSource, options: PcapngSourceOptions) {
    this.#packets = packets
    this.#options = options
  }

  async next(): Promise<Chunk | undefined> {
    const chunk = await this.#packets.next()
    if (chunk !== undefined || this.#closing !== undefined) return chunk
    const { body, compression, findLost } = this.#options
    const totals = this.#packets.totals()
    // Otherwise the next file would name it, and could not continue this one.
    if (totals.corruptBlocks > 0n && body.mayNameDamage) body.nameDamage(await findLost())
    const skipped = Number(totals.pcapng?.leftToSkip ?? 0n)
    this.#closing = compressed(body.closing(totals).subarray(skipped), encodingOf(compression))
    return { bytes: this.#closing, release: () => undefined }
  }

  totals(): DownloadTotals {
    const totals = this.#packets.totals()
    return { ...totals, outputBytes: totals.outputBytes + BigInt(this.#closing?.length ?? 0) }
  }

  close(): void {
    this.#packets.close()
  }
}

/** A member or frame of its own. */
function compressed(bytes: Buffer, encoding: Encoding): Buffer {
  if (encoding === 'none' || bytes.length === 0) return bytes
  return encoding === 'gzip' ? gzipSync(bytes) : zstdCompressSync(bytes)
}
