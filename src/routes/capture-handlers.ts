import { collectCaptureLists } from '../fleet/capture-lists.ts'
import { selectedMembers } from './fleet-selection.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { requestSignal } from './request-signal.ts'
import type { RouteContext } from './route.ts'

/**
 * /stream/list over the fleet: the entries of all chosen devices, newest first, each with its
 * `Device`. Devices that do not answer are listed in `Unreachable` and in Capfleet-Unreachable.
 */
export async function listFleetCaptures(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const members = selectedMembers(ctx, parts)
  using leaving = requestSignal(ctx)
  const { lists, unreachable } = await collectCaptureLists(members, { maxAgeMs: 0, signal: leaving.signal })
  const entries = lists.flatMap(({ device, captures }) =>
    captures.map((capture) => ({ ...capture, Device: device, ...linksThrough(device, capture) })),
  )
  entries.sort((a, b) => compareStart(b, a))
  if (unreachable.length > 0) {
    ctx.set('Capfleet-Unreachable', unreachable.map(({ device }) => device).join(', '))
  }
  ctx.body = {
    Path: '/capture/',
    StreamList: true,
    List: entries,
    Unreachable: unreachable.map(({ device, error }) => ({
      Device: device,
      code: error.code,
      detail: error.message,
    })),
  }
}

const LINK_MEMBERS = ['PCAP', 'Del', 'Link'] as const

/** A device's links are relative to itself. */
function linksThrough(device: string, capture: Readonly<Record<string, unknown>>): Record<string, string> {
  const links: Record<string, string> = {}
  for (const name of LINK_MEMBERS) {
    const link = capture[name]
    if (typeof link === 'string' && link.startsWith('/')) links[name] = `/devices/${device}${link}`
  }
  return links
}

/** StartTS is a decimal string of nanoseconds; an entry without one counts as the oldest. */
function compareStart(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): number {
  const difference = startOf(a) - startOf(b)
  if (difference === 0n) return 0
  return difference < 0n ? -1 : 1
}

function startOf(entry: Readonly<Record<string, unknown>>): bigint {
  const text = entry.StartTS
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? BigInt(text) : 0n
}
