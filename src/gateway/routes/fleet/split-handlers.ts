import { givenParameters } from '../../../shared/contract/request-parameters.ts'
import { ignoredNames, parseIgnoredNames } from '../../../shared/query/ignored-names.ts'
import { requireParameter } from '../../../shared/query/read-parameters.ts'
import type { ListLimits, QuestionOptions } from '../../device/device-client.ts'
import { parseDeviceJson } from '../../device/device-json.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import { captureHolder } from '../request/capture-holder.ts'
import { withoutDevice } from '../request/fleet-selection.ts'
import { requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import { answerList } from './answer-list.ts'
import type { FleetParts } from './fleet-parts.ts'
import { linkThrough } from './link-through.ts'

/** A page of splits has up to 100,000 of about 350 bytes. They are only passed through, so that takes no memory. */
const BYTES_MAX = 64 * 1_024 * 1_024

/**
 * /stream/ssize and /stream/stime over the fleet: the answer of the one device that holds the capture, with its name
 * as `Device` and links to it.
 */
export async function listFleetSplits(ctx: RouteContext, parts: FleetParts): Promise<void> {
  const name = requireParameter(givenParameters(ctx), 'StreamName')
  const device = await captureHolder(name, ctx, parts)
  using leaving = requestSignal(ctx)
  const target = `${ctx.path}?${withoutDevice(ctx.querystring)}`
  const limits = { bytesMax: BYTES_MAX, entriesMax: parts.limits.listEntriesMax }
  const member = parts.fleet.get(device)
  const { clientIdleTimeoutMs } = parts.downloads
  const onHeaders = (headers: Readonly<Record<string, string>>) => {
    const ignored = parseIgnoredNames(headers['capfleet-ignored'])
    if (ignored.length > 0) ctx.set('Capfleet-Ignored', ignoredNames(ignored))
  }
  const splits = splitsOf(member, target, limits, { signal: leaving.signal, onHeaders })
  await answerList(ctx, { Device: device }, splits, clientIdleTimeoutMs)
}

async function* splitsOf(
  { device: { name }, client, breaker }: FleetMember,
  target: string,
  limits: ListLimits,
  asking: Pick<QuestionOptions, 'signal' | 'onHeaders'>,
): AsyncGenerator<readonly string[], Readonly<Record<string, unknown>>> {
  breaker.check()
  const splits = client.getList(target, limits, asking)
  try {
    for (;;) {
      const batch = await splits.next()
      if (batch.done === true) return withoutOwn(batch.value)
      yield batch.value.map((json) => linkedThrough(name, json))
    }
  } catch (error) {
    breaker.suspect(error)
    throw error
  } finally {
    await splits.return({})
  }
}

/** Removes the parameters that the gateway sets itself. */
function withoutOwn({ Device: _device, ...rest }: Readonly<Record<string, unknown>>) {
  return rest
}

/** Fails with device-protocol. */
function linkedThrough(device: string, json: string): string {
  const split = parseDeviceJson(device, json) as Record<string, unknown>
  const PCAP = linkThrough(device, split.PCAP)
  return PCAP === undefined ? json : JSON.stringify({ ...split, PCAP })
}
