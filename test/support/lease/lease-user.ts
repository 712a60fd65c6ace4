/** Shortcuts for using the scheduler in a test. */
import { Redis } from 'ioredis'
import type { Lease, LeaseRequest } from '../../../src/gateway/lease/lease.ts'
import { LeaseScheduler, type LeaseSchedulerOptions } from '../../../src/gateway/lease/lease-scheduler.ts'
import { LEASE_TIMINGS, type LeaseTimings } from '../../../src/gateway/lease/lease-timings.ts'
import type { Log } from '../../../src/shared/base/log.ts'
import type { TempRedis } from '../processes/temp-redis.ts'

export const LEASE_PREFIX = 'test'
export const SILENT_LOG: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
/** A dead replica is detected soon; a live one is not taken for dead because the machine is busy. */
export const QUICK_TIMINGS: LeaseTimings = {
  ...LEASE_TIMINGS,
  heartbeatMs: 50,
  leaseTtlMs: 2_000,
  unavailableMs: 50_000,
  busyMs: 300,
}
/** No replica is taken for dead, and no limit is lifted, before the test says so. */
export const PATIENT_TIMINGS: LeaseTimings = { ...QUICK_TIMINGS, leaseTtlMs: 600_000, busyMs: 600_000 }

const NEVER = new AbortController().signal
let requests = 0

export function startScheduler(
  redis: TempRedis,
  options: Partial<LeaseSchedulerOptions> = {},
): Promise<LeaseScheduler> {
  return LeaseScheduler.start({
    redis: { url: redis.url },
    keyPrefix: LEASE_PREFIX,
    streamsPerDevice: 4,
    log: SILENT_LOG,
    timings: QUICK_TIMINGS,
    ...options,
  })
}

export function askLease(
  scheduler: LeaseScheduler,
  devices: readonly string[],
  options: Partial<LeaseRequest> = {},
): Promise<Lease> {
  return scheduler.acquire({
    id: `request-${requests++}`,
    devices,
    class: 'interactive',
    user: 'tester',
    signal: NEVER,
    waitMs: 30_000,
    ...options,
  })
}

export async function giveBack(...leases: readonly Lease[]): Promise<void> {
  await Promise.all(leases.map((lease) => lease[Symbol.asyncDispose]()))
}

/** Makes Redis treat the replica as one that has been silent for too long. */
export async function lapse(redis: TempRedis, replica: string): Promise<void> {
  await setScore(redis, 'hb', replica)
}

/** Ends the time for which a device that was busy gets no more streams. */
export async function liftLimit(redis: TempRedis, device: string): Promise<void> {
  await setScore(redis, 'restore', device)
}

/** Sets a time that is known to Redis to one long ago. */
async function setScore(redis: TempRedis, key: 'hb' | 'restore', member: string): Promise<void> {
  const client = new Redis(redis.url)
  try {
    await client.zadd(`{${LEASE_PREFIX}}:${key}`, 'XX', 1, member)
  } finally {
    client.disconnect()
  }
}

export interface ExpectedUse {
  readonly device: string
  readonly used?: number
  readonly waiting?: number
}

/** Waits until the device's use is as expected. */
export async function untilUse(
  redis: TempRedis,
  scheduler: LeaseScheduler,
  { device, ...expected }: ExpectedUse,
): Promise<void> {
  await redis.until(async () => {
    const [use] = await scheduler.use([device])
    return Object.entries(expected).every(([name, count]) => use?.[name as 'used' | 'waiting'] === count)
  })
}
