import { PcapngOption, readBlock, STATISTICS_FIELDS_BYTES } from './pcapng-blocks.ts'
import { PcapngBoundary } from './pcapng-boundary.ts'

/** The first comment of the block that ends a pcapng file begins so; no other comment of that block does. */
export const PCAPNG_END = 'capfleet end: '
/** Comments of that block that say what is missing begin so. */
export const PCAPNG_MISSING = 'capfleet missing: '

/**
 * Follows the blocks of a pcapng file as capfleet writes it, and knows whether it is whole: its last block is one of
 * interface statistics, whose first comment begins with PCAPNG_END. Neither a query in another comment nor the bytes of
 * a packet can look like that. Holds nothing but the last block of statistics. Feed every byte once, in order, and
 * nothing more after it has thrown.
 */
export class PcapngEnd {
  readonly #boundary: PcapngBoundary
  /** The last block of statistics. */
  #statistics: Buffer | undefined
  /** Where it ends. */
  #statisticsEnd = 0

  /** `name` is what errors call the file. */
  constructor(name: string) {
    this.#boundary = new PcapngBoundary(name, {
      onStatistics: (block) => {
        this.#statistics = block
        this.#statisticsEnd = this.#boundary.wholeBytes
      },
    })
  }

  /** Fails with device-protocol at anything that is not such a file. */
  feed(chunk: Uint8Array): void {
    this.#boundary.feed([chunk])
  }

  /** The comments of the block that ends the file, the first without PCAPNG_END; undefined: the file is not whole. */
  get comments(): readonly string[] | undefined {
    const { atBoundary, wholeBytes } = this.#boundary
    if (!atBoundary || this.#statistics === undefined || wholeBytes !== this.#statisticsEnd) return undefined
    const [first, ...others] = commentsOf(this.#statistics)
    if (first === undefined || !first.startsWith(PCAPNG_END)) return undefined
    return [first.slice(PCAPNG_END.length), ...others]
  }
}

function commentsOf(statistics: Buffer): readonly string[] {
  const { options } = readBlock(statistics, STATISTICS_FIELDS_BYTES)
  return options.flatMap(({ code, value }) =>
    code === PcapngOption.comment ? [Buffer.from(value).toString()] : [],
  )
}

export interface EndOfFile {
  readonly packets: bigint
  /** Blocks of packets that are left out as damaged. */
  readonly corruptBlocks: bigint
  /** The time of the first packet that MaxPackets or MaxBytes cut off. */
  readonly nextNs: bigint | undefined
  /** What else is missing. */
  readonly lacks: readonly string[]
}

/** The first comment of the block that ends a file. */
export function endComment({ packets, corruptBlocks, nextNs, lacks }: EndOfFile): string {
  const missing = [...(corruptBlocks === 0n ? [] : [`${corruptBlocks} damaged blocks are missing`]), ...lacks]
  const extent = missing.length === 0 ? 'complete' : 'incomplete'
  const limited = `ended by MaxPackets or MaxBytes; the next packet is from ${nextNs} ns`
  return [`${PCAPNG_END}${packets} packets, ${nextNs === undefined ? extent : limited}`, ...missing].join(
    '; ',
  )
}
