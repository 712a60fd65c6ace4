import type { CapfleetError } from '../base/error.ts'
import { deviceFailure } from '../device/device-failure.ts'
import type { CaptureEntry } from './device-captures.ts'
import type { FleetMember } from './fleet.ts'

export interface CaptureList {
  readonly device: string
  readonly captures: readonly CaptureEntry[]
}

export interface UnreachableDevice {
  readonly device: string
  readonly error: CapfleetError
}

export interface CaptureLists {
  readonly lists: readonly CaptureList[]
  readonly unreachable: readonly UnreachableDevice[]
}

/** What the devices hold, asked of all at the same time; those that do not answer are told apart. */
export async function collectCaptureLists(
  members: readonly FleetMember[],
  { maxAgeMs, signal }: { readonly maxAgeMs: number; readonly signal: AbortSignal },
): Promise<CaptureLists> {
  const lists: CaptureList[] = []
  const unreachable: UnreachableDevice[] = []
  const answers = await Promise.allSettled(members.map((member) => member.captures.get(maxAgeMs, signal)))
  signal.throwIfAborted()
  for (const [index, answer] of answers.entries()) {
    const device = members[index]?.device.name ?? ''
    if (answer.status === 'fulfilled') lists.push({ device, captures: answer.value })
    else unreachable.push({ device, error: deviceFailure(device, answer.reason) })
  }
  return { lists, unreachable }
}
