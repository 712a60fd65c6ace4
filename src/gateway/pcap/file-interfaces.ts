/**
 * The interfaces of a merge in pcapng: the capture ports that capfleet devices name, and each other device as one. Their
 * descriptions are written before their first packets, in the order of those.
 */
import { MergedInterfaces, type PcapngBlocks } from '../../../native/pcapng-records.ts'
import { typeOfWord } from '../../shared/pcap/link-types.ts'
import type { PcapHeader } from '../../shared/pcap/pcap-header.ts'
import {
  type BlockOption,
  countOption,
  IN_NANOSECONDS,
  INTERFACE_FIELDS_BYTES,
  interfaceDescription,
  interfaceStatistics,
  optionBytes,
  PcapngOption,
  readBlock,
  readOptions,
  STATISTICS_FIELDS_BYTES,
  textOption,
} from '../../shared/pcap/pcapng-blocks.ts'
import { PCAPNG_END, PCAPNG_MISSING } from '../../shared/pcap/pcapng-end.ts'
import { filterOptions } from '../../shared/query/download/pcapng-comments.ts'

export interface FileInterfacesOptions {
  /** The devices in the order of the merge. */
  readonly devices: readonly string[]
  readonly siteOf: (device: string) => string | undefined
  /** The caller's filter, which devices apply that cannot say so themselves. */
  readonly filterBpf: string | undefined
}

export interface StreamOptions {
  /** Subtracted from every timestamp. */
  readonly alignNs: bigint
  /** Whether the stream repeats what an earlier one of the device has said. */
  readonly isContinued: boolean
  /** Whether it was merged before. What it says of copies may not be true of the packets kept now. Default: no. */
  readonly isMergedAgain?: boolean
}

export interface FileEnd {
  /** When the statistics were true. */
  readonly atNs: bigint
  /** The first one ends the file. */
  readonly comments: readonly [string, ...string[]]
  /** How much may be written; less then, but at least the statistics and the first comment. Default: all. */
  readonly bytesMax?: number | undefined
}

export interface InterfaceRemarks {
  /** Its Interface Description Block. */
  readonly description: Buffer
  readonly comments: readonly string[]
}

interface Interface {
  readonly id: number
  readonly device: string
  readonly name: string
  readonly linkType: number
  readonly snaplen: number
  readonly options: readonly BlockOption[]
  /** What the device says about it, except for the number of delivered packets. */
  statistics: readonly BlockOption[]
  /** Time of the last packet with a remark. */
  remarkedNs: bigint
}

/** A port needs one for each link type; a device that describes more is broken. */
export const INTERFACES_MAX = 1_024
const DESCRIPTION_BYTES_MAX = 8_192
/** Of an interface; more are not kept. */
const STATISTICS_OPTIONS_MAX = 256
/** A longer remark would take a merge more memory than it has set aside. */
const REMARK_BYTES_MAX = 4_096
/** Bytes of the statistics that each interface with packets has at least. */
export const STATISTICS_BYTES = interfaceStatistics({ interfaceNumber: 0, atNs: 0n }, [
  countOption(PcapngOption.statisticsDelivered, 0n),
]).length

export class FileInterfaces {
  readonly merged = new MergedInterfaces()
  readonly #options: FileInterfacesOptions
  readonly #known: Interface[] = []
  /** Programs expect the same of every interface. Undefined until the merge begins. */
  #snaplen: number | undefined

  constructor(options: FileInterfacesOptions) {
    this.#options = options
  }

  /** Describes a device whose stream is a PCAP; returns the tag of its packets. */
  addDevice(device: string, { linkType, snaplen }: PcapHeader): number {
    const options = [...this.#siteText(device, []), ...filterOptions(this.#options.filterBpf)]
    return this.#add({ device, name: device, linkType: typeOfWord(linkType), snaplen, options })
  }

  /** Takes the blocks of a device's pcapng. They throw an Error if it has too many. */
  blocksOf(device: string, { alignNs, isContinued, isMergedAgain = false }: StreamOptions): PcapngBlocks {
    const isKept = (option: BlockOption) => isComment(option) && !(isMergedAgain && isOfCopies(option))
    return {
      interface: (block) => this.#described(device, block),
      statistics: (id, block) => {
        const one = this.#known[id]
        const { options } = readBlock(block, STATISTICS_FIELDS_BYTES)
        if (one !== undefined) one.statistics = joined(one.statistics, options.filter(isKeptStatistic))
      },
      remark: ({ tag, ns }, bytes) => {
        const one = this.#known[tag]
        const options = optionBytes(readOptions(bytes).filter(isKept))
        const isKnown = one === undefined || (isContinued && ns <= one.remarkedNs)
        if (isKnown || options.length === 0 || options.length > REMARK_BYTES_MAX) return
        one.remarkedNs = ns
        this.merged.remark(tag, ns - alignNs, options)
      },
    }
  }

  /**
   * Takes the blocks of a file that was merged before: its interfaces keep their names, and what is said about them,
   * except what was missing then.
   */
  blocksOfFile(): PcapngBlocks {
    const { statistics, remark } = this.blocksOf('', { alignNs: 0n, isContinued: false, isMergedAgain: true })
    return {
      interface: (block) => this.#describedInFile(block),
      statistics: (id, block) => {
        statistics(id, block)
        const one = this.#known[id]
        if (one !== undefined) one.statistics = one.statistics.filter((option) => !isOfMissing(option))
      },
      remark,
    }
  }

  /** Call it before the first packet is merged, with the snaplen of the file. */
  begin(snaplen: number): void {
    this.#snaplen = snaplen
    for (const one of this.#known) this.merged.describe(one.id, this.#describe(one))
  }

  /** What is said about each interface after the packets, whether it has any or not. */
  remarks(): readonly InterfaceRemarks[] {
    const commentsOf = (one: Interface) =>
      [...one.statistics, ...duplicatesText(this.merged.at(one.id).duplicates)]
        .filter(({ code }) => code === PcapngOption.comment)
        .map(({ value }) => Buffer.from(value).toString())
    return this.#known
      .toSorted((a, b) => this.#byPlace(a, b))
      .map((one) => ({ description: this.#describe(one), comments: commentsOf(one) }))
  }

  /** The largest snaplen of the interfaces so far. */
  get snaplen(): number {
    return Math.max(0, ...this.#known.map(({ snaplen }) => snaplen))
  }

  /** The blocks after the last packet: interfaces without packets, and the statistics of all. */
  closing({ atNs, comments, bytesMax = Infinity }: FileEnd): Buffer {
    const all = this.#closing(atNs, comments, { isFull: true })
    return all.length <= bytesMax ? all : this.#closing(atNs, comments.slice(0, 1), { isFull: false })
  }

  #closing(atNs: bigint, comments: readonly string[], { isFull }: { readonly isFull: boolean }): Buffer {
    const states = this.#known.map((one) => ({ one, state: this.merged.at(one.id) }))
    const written = states
      .filter(({ state }) => state.number !== undefined)
      .sort((a, b) => (a.state.number ?? 0) - (b.state.number ?? 0))
    const silent = states
      .filter(({ state }) => state.number === undefined)
      .sort((a, b) => this.#byPlace(a.one, b.one))
    // A file needs an interface, even one without packets.
    const needed = written.length === 0 ? 1 : 0
    const added = isFull ? silent : silent.slice(0, needed)
    const blocks: Buffer[] = added.map(({ one }) => this.#describe(one))
    const last = written.length + added.length - 1
    for (const [interfaceNumber, { one, state }] of [...written, ...added].entries()) {
      const ends =
        interfaceNumber === last ? comments.map((text) => textOption(PcapngOption.comment, text)) : []
      const own = isFull ? [...one.statistics, ...duplicatesText(state.duplicates)] : []
      const delivered = countOption(PcapngOption.statisticsDelivered, BigInt(state.packets))
      blocks.push(interfaceStatistics({ interfaceNumber, atNs }, [...ends, delivered, ...own]))
    }
    return Buffer.concat(blocks)
  }

  #described(device: string, block: Buffer): number {
    if (block.length > DESCRIPTION_BYTES_MAX)
      throw new Error(`an interface has a description of ${block.length} bytes`)
    const { fields, options } = readBlock(block, INTERFACE_FIELDS_BYTES)
    const [resolution] = options.filter(({ code }) => code === IN_NANOSECONDS.code)
    if (resolution?.value[0] !== IN_NANOSECONDS.value[0]) throw new Error('its times are not in nanoseconds')
    const linkType = fields.readUInt16LE(0)
    const name = this.#nameOf(device, options)
    const known = this.#find({ name, linkType })
    if (known !== undefined) return known.id
    const kept = options.filter(({ code }) => code === PcapngOption.interfaceFilter)
    const described = [...this.#siteText(device, options), ...kept]
    const added = { device, name, linkType, snaplen: fields.readUInt32LE(4), options: described }
    // Bytes that are no UTF-8 take more when they are written.
    const { length } = this.#describe(added)
    if (length > 2 * DESCRIPTION_BYTES_MAX) throw new Error(`an interface is described by ${length} bytes`)
    return this.#add(added)
  }

  #describedInFile(block: Buffer): number {
    const { fields, options } = readBlock(block, INTERFACE_FIELDS_BYTES)
    const name = textOf(options, PcapngOption.interfaceName) ?? ''
    const linkType = fields.readUInt16LE(0)
    const known = this.#find({ name, linkType })
    if (known !== undefined) return known.id
    const described = options.filter(
      ({ code }) => code === PcapngOption.interfaceDescription || code === PcapngOption.interfaceFilter,
    )
    // Names of devices have no colon.
    const [device = ''] = name.split(':')
    return this.#add({ device, name, linkType, snaplen: fields.readUInt32LE(4), options: described })
  }

  #find({ name, linkType }: Pick<Interface, 'name' | 'linkType'>): Interface | undefined {
    return this.#known.find((one) => one.name === name && one.linkType === linkType)
  }

  /** Where streams arrive in another order, the file is the same. */
  #byPlace(a: Interface, b: Interface): number {
    const { devices } = this.#options
    return (
      devices.indexOf(a.device) - devices.indexOf(b.device) ||
      a.name.localeCompare(b.name, 'en') ||
      a.linkType - b.linkType
    )
  }

  /** A device may have another name here than it knows. */
  #nameOf(device: string, options: readonly BlockOption[]): string {
    const given = textOf(options, PcapngOption.interfaceName) ?? ''
    return `${device}:${given.slice(given.lastIndexOf(':') + 1)}`
  }

  #siteText(device: string, options: readonly BlockOption[]): readonly BlockOption[] {
    const site = this.#options.siteOf(device)
    const said = textOf(options, PcapngOption.interfaceDescription)
    // A gateway that merged the stream on its way has named it.
    const named = `site ${site}`
    const isNamed = site === undefined || said === named || said?.startsWith(`${named}, `) === true
    const parts = [...(isNamed ? [] : [`site ${site}`]), ...(said === undefined ? [] : [said])]
    return parts.length === 0 ? [] : [textOption(PcapngOption.interfaceDescription, parts.join(', '))]
  }

  #add(one: Omit<Interface, 'id' | 'statistics' | 'remarkedNs'>): number {
    if (this.#known.filter(({ device }) => device === one.device).length >= INTERFACES_MAX)
      throw new Error(`it describes more than ${INTERFACES_MAX} interfaces`)
    const id = this.merged.add(one.name, one.linkType, this.#describe(one))
    this.#known[id] = { ...one, id, statistics: [], remarkedNs: -1n }
    return id
  }

  #describe({
    name,
    linkType,
    snaplen,
    options,
  }: Omit<Interface, 'id' | 'statistics' | 'remarkedNs'>): Buffer {
    return interfaceDescription({ linkType, snaplen: this.#snaplen ?? snaplen }, [
      textOption(PcapngOption.interfaceName, name),
      IN_NANOSECONDS,
      ...options,
    ])
  }
}

function textOf(options: readonly BlockOption[], wanted: number): string | undefined {
  const found = options.find(({ code }) => code === wanted)
  return found === undefined ? undefined : Buffer.from(found.value).toString()
}

function isKeptStatistic({ code, value }: BlockOption): boolean {
  if (code === PcapngOption.statisticsDelivered) return false
  return code !== PcapngOption.comment || !Buffer.from(value).toString().startsWith(PCAPNG_END)
}

/** Comments that were there remain: several streams and files may be of one interface. Numbers are the latest. */
function joined(before: readonly BlockOption[], after: readonly BlockOption[]): readonly BlockOption[] {
  const isSaidAgain = ({ value }: BlockOption): boolean =>
    after.some((one) => isComment(one) && Buffer.from(one.value).equals(value))
  const kept = before.filter((one) => isComment(one) && !isSaidAgain(one))
  return [...kept, ...after].slice(0, STATISTICS_OPTIONS_MAX)
}

function isComment({ code }: BlockOption): boolean {
  return code === PcapngOption.comment
}

/** As the engine writes it, see HeldPackets. */
function isOfCopies({ value }: BlockOption): boolean {
  return Buffer.from(value).toString().startsWith('capfleet copies: ')
}

function isOfMissing({ code, value }: BlockOption): boolean {
  return code === PcapngOption.comment && Buffer.from(value).toString().startsWith(PCAPNG_MISSING)
}

function duplicatesText(duplicates: number): readonly BlockOption[] {
  if (duplicates === 0) return []
  return [
    textOption(PcapngOption.comment, `capfleet duplicates: ${duplicates} copies of other packets left out`),
  ]
}
