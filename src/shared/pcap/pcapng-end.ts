/** The comment by which a reader tells that a pcapng file of capfleet is whole. */

const BEGINNING = 'capfleet end:'

export interface EndOfFile {
  readonly packets: bigint
  /** Blocks of packets that are left out as damaged. */
  readonly corruptBlocks: bigint
  /** The time of the first packet that MaxPackets or MaxBytes cut off. */
  readonly nextNs: bigint | undefined
  /** What else is missing. */
  readonly lacks: readonly string[]
}

export function endComment({ packets, corruptBlocks, nextNs, lacks }: EndOfFile): string {
  const missing = [...(corruptBlocks === 0n ? [] : [`${corruptBlocks} damaged blocks are missing`]), ...lacks]
  const extent = missing.length === 0 ? 'complete' : 'incomplete'
  const limited = `ended by MaxPackets or MaxBytes; the next packet is from ${nextNs} ns`
  return [`${BEGINNING} ${packets} packets, ${nextNs === undefined ? extent : limited}`, ...missing].join(
    '; ',
  )
}

export function isEndComment(text: string): boolean {
  return text.startsWith(BEGINNING)
}
