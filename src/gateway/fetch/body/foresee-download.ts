/**
 * What is known about a download before its streams, for HEAD: each device makes the checks that it would make for
 * GET, and returns the head of its answer. This takes no lease and no stream.
 */
import type { CapfleetError } from '../../../shared/base/error.ts'
import { isForeign } from '../../device/device-kind.ts'
import { callerLabel } from '../../device/device-request.ts'
import type { Fleet } from '../../fleet/fleet.ts'
import type { DownloadPlan, DownloadStep } from '../../fleet/plan/plan.ts'
import type { CallLimits } from '../../fleet/questions/call-limits.ts'
import { claimsOfMerge, readClaims } from '../proof/device-claims.ts'
import { isDeviceFault, joinFailures } from '../stream/leased-streams.ts'
import type { BodyFacts } from './body.ts'
import { requireKnownClocks } from './known-clocks.ts'
import { clocksOf, type MergeOptions } from './merged-body.ts'

export interface ForeseeingParts {
  readonly fleet: Fleet
  readonly callLimits: CallLimits
  /** How long each device may take to answer. */
  readonly timeoutMs: number
}

export interface ForeseeingRequest {
  readonly user: string
  readonly options: Pick<MergeOptions, 'onError' | 'align'>
  readonly signal: AbortSignal
}

/** Fails as opening the streams would, as far as a device's status alone reveals it. */
export async function foreseeDownload(
  plan: DownloadPlan,
  parts: ForeseeingParts,
  request: ForeseeingRequest,
): Promise<BodyFacts> {
  const { onError, align } = request.options
  const clockOf = (device: string) => parts.fleet.clockOf(device)
  const devices = plan.steps.map(({ device }) => device)
  if (align) await parts.fleet.knowClocks(devices)
  const heads: Readonly<Record<string, string>>[] = []
  const failures = new Map<string, CapfleetError>()
  const answers = await Promise.allSettled(plan.steps.map((step) => headOf(step, parts, request)))
  request.signal.throwIfAborted()
  const fatal: unknown[] = []
  for (const [index, answer] of answers.entries()) {
    const device = plan.steps[index]?.device ?? ''
    if (answer.status === 'fulfilled') heads.push(answer.value)
    else if (onError === 'partial' && isDeviceFault(answer.reason)) failures.set(device, answer.reason)
    else fatal.push(answer.reason)
  }
  if (fatal.length > 0) throw joinFailures(fatal)
  if (heads.length === 0) throw joinFailures([...failures.values()])
  if (align)
    requireKnownClocks(
      devices.filter((device) => !failures.has(device)),
      clockOf,
    )
  const { beginNs: fromNs, endNs: toNs } = plan.query
  const claims = heads.map(readClaims)
  const [only] = claims
  const isMerge = plan.kind === 'merge'
  return {
    claims: isMerge || only === undefined ? claimsOfMerge(claims) : only,
    clocks: isMerge ? clocksOf({ plan, clockOf }) : new Map(),
    missing: [...failures.keys()].map((device) => ({ device, fromNs, toNs })),
  }
}

async function headOf(
  { device, target, deviceKind }: DownloadStep,
  { fleet, callLimits, timeoutMs }: ForeseeingParts,
  { user, signal }: ForeseeingRequest,
): Promise<Readonly<Record<string, string>>> {
  // The API only has GET: such a device's answer to HEAD says nothing about the download.
  if (isForeign(deviceKind)) return {}
  const { client, breaker } = fleet.get(device)
  const ask = () => client.getHead(target, { caller: callerLabel(user), timeoutMs, signal })
  return await callLimits.run({ device, user }, () => breaker.run(ask))
}
