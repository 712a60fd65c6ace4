/**
 * A job that ends its worker again and again, and never gets further, is parked: it must not take all workers away from
 * the others. A worker that dies for another reason costs a job nothing: it has got further by then, or will.
 */
import type { Job } from 'bullmq'
import type { WriteJob } from './export-jobs.ts'
import { Later } from './export-parts.ts'

/** So often at the same place: others' deaths do not hit one job so often. */
const STRIKES_MAX = 5
/** From then on the job comes behind those that harm nobody. */
const STRIKES_WAITING = 2
const PAUSE_MS = 1_000

/** Whether the job is to be parked. Throws Later for one that is to let others go first. `marker`: how far it is. */
export async function isPoison(job: Job<WriteJob>, marker: string): Promise<boolean> {
  const seen = job.stalledCounter
  const { deaths } = job.data
  if (seen <= (deaths?.seen ?? 0)) return false
  const strikes = deaths?.marker === marker ? deaths.strikes + 1 : 1
  if (strikes >= STRIKES_MAX) return true
  await job.updateData({ ...job.data, deaths: { seen, marker, strikes } })
  if (strikes >= STRIKES_WAITING) throw new Later(PAUSE_MS * 2 ** strikes)
  return false
}
