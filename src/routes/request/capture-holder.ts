import { CapfleetError } from '../../base/error.ts'
import { ANSWER_BYTES_MAX } from '../../device/device-client.ts'
import { callerLabel } from '../../device/device-request.ts'
import { collectCaptureLists } from '../../fleet/capture-lists.ts'
import { findCapture } from '../../fleet/find-capture.ts'
import { CAPTURE_NAME, CAPTURE_NAME_RULE } from '../../query/capture-name-rule.ts'
import { badParameter } from '../../query/query-parameters.ts'
import type { GatewayParts } from '../gateway-parts.ts'
import type { RouteContext } from '../route.ts'
import { sourceMembers } from './fleet-selection.ts'
import { requestSignal } from './request-caller.ts'

/**
 * The name of the one device, of those that the request chooses, that holds the capture. Fails with
 * bad-parameter, ambiguous-capture, aged-out, unknown-capture, or the error of a device that could not be asked.
 */
export async function captureHolder(
  captureName: string,
  ctx: RouteContext,
  parts: GatewayParts,
): Promise<string> {
  if (!CAPTURE_NAME.test(captureName)) throw badParameter('StreamName', CAPTURE_NAME_RULE)
  const members = sourceMembers(ctx, parts)
  using leaving = requestSignal(ctx)
  const { signal } = leaving
  try {
    return findCapture(captureName, await collectCaptureLists(members, { maxAgeMs: LIST_AGE_MS, signal }))
  } catch (error) {
    if (!(error instanceof CapfleetError) || error.code !== 'unknown-capture') throw error
  }
  // It may have been started since the lists were made.
  const lists = await collectCaptureLists(members, { maxAgeMs: 0, signal })
  try {
    return findCapture(captureName, lists)
  } catch (error) {
    if (!(error instanceof CapfleetError) || error.code !== 'unknown-capture') throw error
    await refuseAgedOut(captureName, ctx, parts, signal)
    throw error
  }
}

/** Fails with aged-out when a device says that it held the capture once; lists have only what is there. */
async function refuseAgedOut(
  captureName: string,
  ctx: RouteContext,
  parts: GatewayParts,
  signal: AbortSignal,
): Promise<void> {
  const user = ctx.state.caller?.name ?? ''
  const limit = { caller: callerLabel(user), timeoutMs: parts.limits.probeTimeoutMs, signal }
  const target = `/api/v1/pcap/estimate?StreamName=${captureName}`
  const answers = await Promise.allSettled(
    sourceMembers(ctx, parts).map(({ device, client, breaker }) =>
      parts.callLimits.run({ device: device.name, user }, () =>
        breaker.run(() => client.getText(target, { ...limit, bytesMax: ANSWER_BYTES_MAX.estimate })),
      ),
    ),
  )
  const reasons = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))
  const agedOut = reasons.find((reason) => reason instanceof CapfleetError && reason.code === 'aged-out')
  if (agedOut !== undefined) throw agedOut
}

/** A thousand downloads that begin together need one list of each device. */
const LIST_AGE_MS = 1_500
