/** An export is of the appliances that its devices were when it was ordered: packets of others must not get into it. */
import { deviceReplaced } from '../../device/device-failure.ts'
import { isSameDevice } from '../../fleet/health/device-identity.ts'
import type { ExportOrder } from '../export-order.ts'
import type { ExportParts } from './export-parts.ts'

/** Fails with device-replaced, or as a question to the device does. */
export async function refuseReplaced(
  { fleet, limits }: Pick<ExportParts, 'fleet' | 'limits'>,
  { identities }: ExportOrder,
  device: string,
  signal: AbortSignal,
): Promise<void> {
  const known = identities?.[device]
  if (known === undefined) return
  const limit = { timeoutMs: limits.estimateTimeoutMs, signal }
  if (!(await isSameDevice(known, fleet.get(device), limit))) throw deviceReplaced(device)
}
