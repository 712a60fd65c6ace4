/** The time that all gateways and workers agree on; see src/gateway/redis/shared-clock.ts. */
export interface SharedTime {
  /** Epoch milliseconds. */
  nowMs(): number
  /** Why nothing may be removed or started by time now, or undefined. */
  readonly distrust: ClockDistrust | undefined
}

export const CLOCK_DISTRUSTS = ['host-differs', 'redis-stepped', 'unconfirmed', 'redis-silent'] as const
export type ClockDistrust = (typeof CLOCK_DISTRUSTS)[number]
