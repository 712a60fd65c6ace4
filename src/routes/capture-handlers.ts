import { type CaptureList, collectCaptureLists } from '../fleet/capture-lists.ts'
import { newestFirst } from '../fleet/device-captures.ts'
import { answerList } from './answer-list.ts'
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
  if (unreachable.length > 0) {
    ctx.set('Capfleet-Unreachable', unreachable.map(({ device }) => device).join(', '))
  }
  const Unreachable = unreachable.map(({ device, error }) => ({
    Device: device,
    code: error.code,
    detail: error.message,
  }))
  await answerList(ctx, { Path: '/capture/', StreamList: true }, shownEntries(lists, { Unreachable }))
}

const BATCH_ENTRIES = 100

/** The entries of all lists as they are shown, in batches; then `rest`. */
async function* shownEntries<Rest>(
  lists: readonly CaptureList[],
  rest: Rest,
): AsyncGenerator<readonly string[], Rest> {
  const entries = lists.flatMap(({ device, captures }) => captures.map((capture) => ({ ...capture, device })))
  entries.sort(newestFirst)
  for (let from = 0; from < entries.length; from += BATCH_ENTRIES) {
    const batch = entries.slice(from, from + BATCH_ENTRIES)
    yield batch.map(({ device, name, json }) => {
      const capture = JSON.parse(json) as Record<string, unknown>
      const shown = { ...capture, StreamName: name, Device: device, ...linksThrough(device, capture) }
      return JSON.stringify(shown)
    })
  }
  return rest
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
