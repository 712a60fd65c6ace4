import { addAbortListener } from 'node:events'

/** Settles as `value` does, or rejects with the signal's reason, whichever comes first. */
export async function orAborted<Value>(value: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const left = Promise.withResolvers<never>()
  using _leave = addAbortListener(signal, () => left.reject(signal.reason))
  return await Promise.race([value, left.promise])
}
