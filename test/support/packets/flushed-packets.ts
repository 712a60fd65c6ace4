/** What a recorder has promised about the packets of a NumberedSender, and whether it has kept the promise. */
import { eventually } from '../eventually.ts'
import type { NumberedSender } from './numbered-sender.ts'

/** Maximum time from the call that sends a packet to its timestamp at the other end of the wire. */
const TRANSIT_NS = 20_000_000n

export interface Flushed {
  /** All packets [from, to) were flushed. */
  readonly from: number
  readonly to: number
}

/** Number of a packet that is sent after this call. */
export async function sentFromNowOn(sender: NumberedSender): Promise<number> {
  const before = sender.sent
  // Packets in transit may be from before; the batch after the next mark is not.
  await eventually(() => sender.sent > before, { message: 'the sender goes on' })
  const { sent } = sender
  await eventually(() => sender.sent > sent, { message: 'the sender goes on' })
  return sender.sent
}

/** All packets below this number had certainly arrived and were flushed. */
export function flushedBefore(sender: NumberedSender, flushedNs: bigint): number {
  return sender.sentBefore(flushedNs - TRANSIT_NS)
}

/** Checks that numbers ascend without duplicates, and that all flushed ones are there. */
export function lossesIn(stored: readonly number[], promises: readonly Flushed[]): string[] {
  const disorder = stored.flatMap((number, index) => {
    const before = stored[index - 1] ?? -1
    return number > before ? [] : [`${number} comes after ${before}`]
  })
  const there = new Set(stored)
  const missing: string[] = []
  for (const { from, to } of promises) {
    for (let number = from; number < to; number++) {
      if (!there.has(number)) missing.push(`${number} was flushed and is not there`)
    }
  }
  return [...disorder, ...missing].slice(0, 20)
}
