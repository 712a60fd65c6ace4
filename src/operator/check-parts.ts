/** What all questions of `capfleet device check` need. */
import type { FindingList } from '../../appliance/doctor/finding.ts'
import type { DeviceClient } from '../gateway/device/device-client.ts'
import { CapfleetError } from '../shared/base/error.ts'

export const TIMEOUT_MS = 30_000
export const NS_PER_S = 1_000_000_000n
/** The name under which the gateway's client asks. */
export const CALLER = 'device-check'
export const BUSY_FIX = 'check again when a stream is free'

export interface Check {
  readonly client: DeviceClient
  readonly name: string
  readonly findings: FindingList
  readonly signal: AbortSignal
}

/** The result, or why it failed. Throws the signal's reason, and internal errors. */
export async function attempt<Result>(
  work: () => Promise<Result>,
  signal: AbortSignal,
): Promise<Result | CapfleetError> {
  try {
    return await work()
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof CapfleetError) return error
    throw error
  }
}
