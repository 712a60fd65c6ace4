import { createHash } from 'node:crypto'

const LABEL_LENGTH = 16

/**
 * What the gateway tells devices of its callers (Capfleet-Caller), so that they can share out fairly among
 * those who all come under its own credentials: the same for all requests of a user, and no name.
 */
export function callerLabel(user: string): string {
  return createHash('sha256').update(user).digest('hex').slice(0, LABEL_LENGTH)
}
