/** An export is of the appliances that its devices were when it was ordered: packets of others must not get into it. */
import { deviceReplaced } from '../../gateway/device/device-failure.ts'
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import type { ExportParts } from '../../gateway/export/export-parts.ts'
import { isSameDevice } from '../../gateway/fleet/health/device-identity.ts'

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
