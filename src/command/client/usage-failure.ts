import { ClientFailure } from '../../client/client-failure.ts'

/** A mistake in the command line itself. */
export function usageFailure(message: string): ClientFailure {
  return new ClientFailure('usage', message, { code: 'usage' })
}
