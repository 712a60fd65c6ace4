import { addAbortListener } from 'node:events'

/** Work of the engine that can be cancelled. */
export interface NativeJob<Result> {
  readonly finished: Promise<Result>
  cancel(): void
}

/** Starts the job, and cancels it when the signal aborts. Rejects like the job, or with the signal's reason. */
export async function untilAborted<Result>(
  start: () => NativeJob<Result>,
  signal: AbortSignal,
): Promise<Result> {
  signal.throwIfAborted()
  const job = start()
  using _listening = addAbortListener(signal, () => job.cancel())
  try {
    return await job.finished
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}
