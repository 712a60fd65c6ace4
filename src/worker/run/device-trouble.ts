/** How long an unreadable device is retried, over all windows of an export. */
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import { type ExportParts, Later } from '../../gateway/export/export-parts.ts'
import { isDeviceFault } from '../../gateway/fetch/stream/leased-streams.ts'
import { CapfleetError } from '../../shared/base/error.ts'

const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000
/** Others hold all streams of the device: this is not a failure of the device. */
const BUSY: ReadonlySet<string> = new Set(['queue-timeout', 'download-slots-exhausted', 'too-many-requests'])
const BUSY_PAUSE_MS = 500
/** Errors unrelated to the device and the order. */
const PASSING: ReadonlySet<string> = new Set([
  'scheduler-unavailable',
  'draining',
  'connections-exhausted',
  'compiler-busy',
  'replica-lost',
])
const PASSING_PAUSE_MS = 2_000

/**
 * Decides what the failure to read a device means. Throws Later if it should be retried; resolves to the failure if it
 * has been retried for as long as the export may wait; rethrows anything else.
 */
export async function judgeFailure(
  { store, limits, outcomes, clock }: ExportParts,
  order: ExportOrder,
  device: string,
  error: unknown,
): Promise<CapfleetError> {
  if (!(error instanceof CapfleetError)) throw error
  if (BUSY.has(error.code)) throw new Later(BUSY_PAUSE_MS)
  if (PASSING.has(error.code)) throw new Later(PASSING_PAUSE_MS)
  if (!isDeviceFault(error) || error.code === 'aged-out') throw error
  const known = await store.troubleOf(order.id, device)
  const nowMs = clock.nowMs()
  const sinceMs = known.sinceMs ?? nowMs
  const isGivenUp = known.isGivenUp || nowMs - sinceMs >= limits.deviceRetryMs
  await store.setTrouble(order.id, device, { retries: known.retries + 1, sinceMs, isGivenUp })
  if (isGivenUp) return error
  outcomes.retried()
  const failures = Math.min(16, Math.log2(1 + (nowMs - sinceMs) / FIRST_PAUSE_MS))
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS, limits.deviceRetryMs)
  throw new Later(Math.round(pauseMs))
}

/** Records that the device was read. */
export async function endTrouble({ store }: ExportParts, order: ExportOrder, device: string): Promise<void> {
  const known = await store.troubleOf(order.id, device)
  if (known.sinceMs === null && !known.isGivenUp) return
  await store.setTrouble(order.id, device, { ...known, sinceMs: null, isGivenUp: false })
}
