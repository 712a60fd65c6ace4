/**
 * Third-party devices reject a stream over their limit in ways that look like a failure: text instead of packets, an
 * empty body, a reset, silence, or a status that means something else. Only a failure to open a stream, or to read its
 * first bytes, can be such a rejection; conclusions that the gateway draws from an answer cannot.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError, type ErrorCode } from '../../../shared/base/error.ts'
import type { DeviceClient } from '../../device/device-client.ts'
import { FREED_LATE_MS } from '../../device/device-kind.ts'

const FAILED_TO_OPEN = new WeakSet<CapfleetError>()

const UNSPOKEN: ReadonlySet<ErrorCode> = new Set([
  'device-protocol',
  'device-unreachable',
  'device-timeout',
  // Status 401 or 403.
  'device-rejected',
])

/** Opens a stream or reads its first bytes. Fails like `ask`, and marks the failure as a possible rejection. */
export async function orRefusal<Answer>(ask: () => Answer | Promise<Answer>): Promise<Answer> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof CapfleetError && isUnclear(error)) FAILED_TO_OPEN.add(error)
    throw error
  }
}

function isUnclear({ code, details }: CapfleetError): boolean {
  return UNSPOKEN.has(code) || details.members?.deviceStatus === 400
}

/** Whether the failure may be the rejection of a stream. */
export function mayBeRefusal(error: unknown): error is CapfleetError {
  return error instanceof CapfleetError && FAILED_TO_OPEN.has(error)
}

/** How long a device may still count a stream that has ended. */
const COUNTED_FOR_MS = 2_000

/** When a stream of each device last ended here (performance.now()). */
const ENDED = new WeakMap<DeviceClient, number>()

export function noteEnded(client: DeviceClient): void {
  ENDED.set(client, performance.now())
}

/** Whether a stream of the device ended here so recently that the device may not have noticed it yet. */
export function hasJustEnded(client: DeviceClient): boolean {
  return performance.now() - (ENDED.get(client) ?? -Infinity) < COUNTED_FOR_MS
}

/** Opens a stream just after another one has ended, and retries while the device may not have noticed that. Fails like `open`. */
export async function openAfterAnother<Opened>(
  open: () => Promise<Opened>,
  signal: AbortSignal,
): Promise<Opened> {
  for (const pauseMs of FREED_LATE_MS) {
    try {
      return await open()
    } catch (error) {
      if (!mayBeFreedLate(error)) throw error
    }
    await delay(pauseMs, undefined, { signal })
  }
  return await open()
}

/** A timeout is no rejection. */
function mayBeFreedLate(error: unknown): boolean {
  if (!(error instanceof CapfleetError) || error.code === 'device-timeout') return false
  return error.code === 'download-slots-exhausted' || mayBeRefusal(error)
}
