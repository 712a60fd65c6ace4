import { CapfleetError } from '../base/error.ts'
import { deviceFailure } from './device-failure.ts'

export interface CallLimit {
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/**
 * Gives `ask` a signal that also aborts after the time-out. Fails with device-timeout then, else with
 * the signal's reason or with what `ask` met, as an error that names the device.
 */
export async function withinLimit<Answer>(
  device: string,
  { timeoutMs, signal }: CallLimit,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const late = new AbortController()
  const timer = setTimeout(() => {
    const message = `device ${device} did not answer within ${timeoutMs / 1_000} s`
    late.abort(new CapfleetError('device-timeout', message, { members: { devices: [device] } }))
  }, timeoutMs)
  try {
    return await ask(AbortSignal.any([signal, late.signal]))
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw late.signal.aborted ? late.signal.reason : deviceFailure(device, error)
  } finally {
    clearTimeout(timer)
  }
}
