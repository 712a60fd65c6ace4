import type { LiveCounts } from '../../../native/live-capture.ts'
import type { CaptureCounts } from '../../link/capture-report.ts'
import type { Drops } from '../../store/segment-table.ts'
import type { Rates } from './capture-rates.ts'
import type { PortTotals } from './recorded-capture.ts'

interface Losses {
  readonly ringDrops: bigint
  readonly diskDrops: bigint
  readonly filteredPackets: bigint
  readonly fcsErrors: bigint
}

const NOTHING: PortTotals = { packets: 0n, bytes: 0n }
const NO_LOSSES: Losses = { ringDrops: 0n, diskDrops: 0n, filteredPackets: 0n, fcsErrors: 0n }

/**
 * The figures of one capture. A driver counts from its start, across rolls; a capture may have begun under an earlier
 * recorder, or after a roll. The numbers added to the driver's counts compensate for both. Exact, because the streams
 * of an ended capture are.
 */
export class CaptureTally {
  /** Added to what the driver has stored, by port; negative after a roll. */
  readonly #stored: ReadonlyMap<number, PortTotals>
  readonly #lost: Losses

  private constructor(stored: ReadonlyMap<number, PortTotals>, lost: Losses) {
    this.#stored = stored
    this.#lost = lost
  }

  /** The tally for a driver that starts now, after the existing segments. */
  static start(held: ReadonlyMap<number, PortTotals>, drops: Drops | undefined): CaptureTally {
    const lost = { ...NO_LOSSES, ringDrops: drops?.ring ?? 0n, diskDrops: drops?.disk ?? 0n }
    return new CaptureTally(new Map(held), lost)
  }

  /** The tally of the next capture, given the totals of this one at its end and the driver's `counts`. */
  afterRoll(ended: ReadonlyMap<number, PortTotals>, counts: LiveCounts): CaptureTally {
    const stored = new Map<number, PortTotals>()
    for (const { port } of counts.ports) {
      const [added, total] = [this.#stored.get(port) ?? NOTHING, ended.get(port) ?? NOTHING]
      stored.set(port, { packets: added.packets - total.packets, bytes: added.bytes - total.bytes })
    }
    const lost = lossesOf(counts)
    return new CaptureTally(stored, {
      ringDrops: -lost.ringDrops,
      diskDrops: -lost.diskDrops,
      filteredPackets: -lost.filteredPackets,
      fcsErrors: -lost.fcsErrors,
    })
  }

  dropsOf(counts: LiveCounts): Drops {
    const lost = lossesOf(counts)
    return { ring: lost.ringDrops + this.#lost.ringDrops, disk: lost.diskDrops + this.#lost.diskDrops }
  }

  countsOf(counts: LiveCounts, rates: Rates): CaptureCounts {
    const ports = counts.ports.map((live) => {
      const added = this.#stored.get(live.port) ?? NOTHING
      return {
        ...live,
        packets: atLeastZero(live.storedPackets + added.packets),
        bytes: atLeastZero(live.storedBytes + added.bytes),
        sizeClasses: [...live.sizeClasses],
      }
    })
    const lost = lossesOf(counts)
    const { ring, disk } = this.dropsOf(counts)
    return {
      packets: ports.reduce((sum, { packets }) => sum + packets, 0n),
      bytes: ports.reduce((sum, { bytes }) => sum + bytes, 0n),
      drops: ring + disk,
      ringDrops: ring,
      diskDrops: disk,
      filteredPackets: lost.filteredPackets + this.#lost.filteredPackets,
      fcsErrors: lost.fcsErrors + this.#lost.fcsErrors,
      pendingPackets: ports.reduce((sum, { pendingPackets }) => sum + pendingPackets, 0n),
      pendingBytes: counts.pendingBytes,
      lastPacketNs: ports.reduce((last, { lastPacketNs }) => later(last, lastPacketNs), 0n),
      flushedNs: counts.flushedNs,
      diskErrors: counts.diskErrors,
      diskMessage: counts.diskMessage,
      ...rates,
      ports,
    }
  }
}

function lossesOf({ ports }: LiveCounts): Losses {
  return ports.reduce(
    (sum, port) => ({
      ringDrops: sum.ringDrops + port.ringDrops,
      diskDrops: sum.diskDrops + port.diskDrops,
      filteredPackets: sum.filteredPackets + port.filteredPackets,
      fcsErrors: sum.fcsErrors + port.fcsErrors,
    }),
    NO_LOSSES,
  )
}

/** A count that is read during a roll may be from before it. */
function atLeastZero(count: bigint): bigint {
  return count > 0n ? count : 0n
}

function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
