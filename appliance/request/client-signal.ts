import type { ApplianceContext } from '../appliance-parts.ts'

/** The reason of a client's signal. */
class ClientGone extends Error {}

/**
 * Runs `answer` with a signal that aborts when the client has left. Failing for that reason is not an error: there is
 * nobody left to answer.
 */
export async function withClientSignal(
  ctx: ApplianceContext,
  answer: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const gone = new AbortController()
  const leave = (): void => gone.abort(new ClientGone())
  ctx.res.once('close', leave)
  if (ctx.res.closed) leave()
  try {
    await answer(gone.signal)
  } catch (error) {
    if (!gone.signal.aborted || error !== gone.signal.reason) throw error
    ctx.respond = false
  }
}
