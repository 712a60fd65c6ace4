import type { CapfleetError } from '../../../shared/base/error.ts'
import { FairLimit } from '../../../shared/base/fair-limit.ts'
import { deviceFailure } from '../../device/device-failure.ts'
import type { FleetMember } from '../fleet.ts'

export interface UnreachableDevice {
  readonly device: string
  readonly error: CapfleetError
}

export interface MembersAnswers<Answer> {
  /** The answers in the order of the members, like `unreachable`. */
  readonly answers: readonly { readonly member: FleetMember; readonly answer: Answer }[]
  readonly unreachable: readonly UnreachableDevice[]
}

/**
 * High enough that devices which do not answer delay the others by a few time-outs at most; low enough that the
 * gateway reads each answer soon after it arrives.
 */
const ASKED_AT_ONCE = 256

/**
 * Asks all members, many of them concurrently, and reports those that fail separately. `ask` is called when it is the
 * member's turn, so that its time limit does not include the wait. Fails with the signal's reason.
 */
export async function askMembers<Answer>(
  members: readonly FleetMember[],
  signal: AbortSignal,
  ask: (member: FleetMember) => Promise<Answer>,
): Promise<MembersAnswers<Answer>> {
  const turns = new FairLimit({ places: ASKED_AT_ONCE })
  const outcomes = await Promise.allSettled(
    members.map(async (member) => {
      using _turn = await turns.acquire(signal)
      return { member, answer: await ask(member) }
    }),
  )
  signal.throwIfAborted()
  const unreachable = outcomes.flatMap((outcome, index) => {
    const device = members[index]?.device.name ?? ''
    return outcome.status === 'rejected' ? [{ device, error: deviceFailure(device, outcome.reason) }] : []
  })
  const answers = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  return { answers, unreachable }
}
