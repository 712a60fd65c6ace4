/**
 * An export reads from the appliances that its devices were when it was ordered: it must not contain packets of
 * others.
 */
import { deviceReplaced } from '../../gateway/device/device-failure.ts'
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import type { ExportParts } from '../../gateway/export/export-parts.ts'
import { isSameDevice } from '../../gateway/fleet/device-identity.ts'

/** Fails with device-replaced, or like a request to the device. */
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
