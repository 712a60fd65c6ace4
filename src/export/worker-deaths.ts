/**
 * A job that ends its worker again and again, and never gets further, is parked: it must not take all workers away from
 * the others. Most of those that a worker has in hand when it dies have done it no harm: they waited for a stream, or
 * for the answer of a device. So what counts is a death while the job was at work.
 */
import type { Job } from 'bullmq'
import type { WriteJob } from './export-jobs.ts'
import { Later } from './export-parts.ts'

/** So often at the same place: others' deaths do not hit one job at work so often. */
const STRIKES_MAX = 5
/** What a death counts that came while the job waited. */
const WAITING_STRIKE = 0.1
/** From then on the job comes behind those that harm nobody. */
const STRIKES_PAUSING = 2
const PAUSE_MS = 1_000

/** Whether the job is to be parked. Throws Later for one that is to let others go first. `marker`: how far it is. */
export async function isPoison(job: Job<WriteJob>, marker: string): Promise<boolean> {
  const seen = job.stalledCounter
  const { deaths } = job.data
  const wasAtWork = deaths?.isAtWork ?? false
  const isNew = seen > (deaths?.seen ?? 0)
  if (!isNew && !wasAtWork) return false
  const known = deaths?.marker === marker ? deaths.strikes : 0
  const strikes = known + (isNew ? (wasAtWork ? 1 : WAITING_STRIKE) : 0)
  if (strikes >= STRIKES_MAX) return true
  await job.updateData({ ...job.data, deaths: { seen, marker, strikes, isAtWork: false } })
  if (isNew && wasAtWork && strikes >= STRIKES_PAUSING) throw new Later(PAUSE_MS * 2 ** Math.floor(strikes))
  return false
}

/** The job does more than wait from now on. */
export async function beginWork(job: Job<WriteJob>, marker: string): Promise<void> {
  const { deaths = { seen: job.stalledCounter, strikes: 0 } } = job.data
  if ('isAtWork' in deaths && deaths.isAtWork) return
  // Nothing is lost when Redis is away: a death counts less then.
  await job.updateData({ ...job.data, deaths: { ...deaths, marker, isAtWork: true } }).catch(() => undefined)
}
