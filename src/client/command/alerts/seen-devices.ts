/** The devices that saw a conversation, so that its download takes no stream of the others. */
import { DevicesThatSaw } from '../../../shared/contract/devices-that-saw.ts'
import { ClientFailure } from '../../client-failure.ts'
import { seenLines } from '../../fleet-seen.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'

export interface SeenQuestion {
  /** One or two addresses, of which a device must have seen all. */
  readonly hosts: readonly string[]
  /** The range, and the devices to choose from. */
  readonly query: QueryPairs
  /** The end of the range if packets count that are captured only later; undefined: only those that there are now. */
  readonly untilNs: bigint | undefined
}

/** Devices have written what they captured so long ago, and their clocks differ less. */
const SETTLED_NS = 60_000_000_000n

/**
 * The devices that may have packets with these addresses, and those whose answer leaves that open. undefined: it is not
 * known, or no device has seen them; then all devices are to be asked, which say what they have.
 */
export async function devicesThatSaw(
  client: GatewayClient,
  { hosts, query, untilNs }: SeenQuestion,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const saw = new DevicesThatSaw(hosts)
  try {
    for await (const { line, askedAt } of seenLines(
      client,
      [['Address', hosts.join(',')], ...query],
      signal,
    )) {
      if (untilNs !== undefined && untilNs > settledNs(askedAt)) return undefined
      saw.take(line)
    }
  } catch (error) {
    // A caller with a filter, a busy gateway, or an older one: the search only saves streams.
    if (error instanceof ClientFailure) return undefined
    throw error
  }
  return saw.names.length === 0 ? undefined : saw.names
}

/** Everything before this time was searched. `askedAt` is the gateway's time, as HTTP writes it. */
function settledNs(askedAt: string | null): bigint {
  const ms = Date.parse(askedAt ?? '')
  return Number.isNaN(ms) ? 0n : BigInt(ms) * 1_000_000n - SETTLED_NS
}
