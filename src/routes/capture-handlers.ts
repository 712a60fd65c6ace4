import { type CaptureList, collectCaptureLists } from '../fleet/capture-lists.ts'
import type { CaptureEntry } from '../fleet/device-captures.ts'
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
  const { clientIdleTimeoutMs } = parts.downloads
  const entries = shownEntries(lists, { Unreachable })
  await answerList(ctx, { Path: '/capture/', StreamList: true }, entries, clientIdleTimeoutMs)
}

const BATCH_ENTRIES = 100

/** The entries of all lists as they are shown, in batches; then `rest`. */
async function* shownEntries<Rest>(
  lists: readonly CaptureList[],
  rest: Rest,
): AsyncGenerator<readonly string[], Rest> {
  let batch: string[] = []
  for (const { device, capture } of newestOfAll(lists)) {
    batch.push(shownEntry(device, capture))
    if (batch.length < BATCH_ENTRIES) continue
    yield batch
    batch = []
  }
  yield batch
  return rest
}

interface DeviceCapture {
  readonly device: string
  readonly capture: CaptureEntry
}

/** Each list is newest first. Of captures that began together that of the earlier list comes first. */
function* newestOfAll(lists: readonly CaptureList[]): Generator<DeviceCapture, void> {
  /** How many of each list have been given. */
  const given = lists.map(() => 0)
  for (;;) {
    let newest: (DeviceCapture & { readonly list: number }) | undefined
    for (const [list, { device, captures }] of lists.entries()) {
      const capture = captures[given[list] ?? 0]
      if (capture === undefined) continue
      if (newest === undefined || capture.startNs > newest.capture.startNs) newest = { device, capture, list }
    }
    if (newest === undefined) return
    given[newest.list] = (given[newest.list] ?? 0) + 1
    yield newest
  }
}

/** As its device sent it, with the device's name and links that lead there. */
function shownEntry(device: string, { name, json }: CaptureEntry): string {
  const capture = JSON.parse(json) as Record<string, unknown>
  return JSON.stringify({ ...capture, StreamName: name, Device: device, ...linksThrough(device, capture) })
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
