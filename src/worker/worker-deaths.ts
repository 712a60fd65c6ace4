/**
 * A job that ends its worker takes all others away that run there. Nobody can tell such a job from those that were only
 * there when a worker died: so a job that was there more than once runs in a process of its own from then on, and is
 * given up when that process dies while its worker lives. A worker's death costs no job more than that.
 */
import type { Job } from 'bullmq'
import type { Deaths, WriteJob } from '../gateway/export/export-jobs.ts'
import { Later } from '../gateway/export/export-parts.ts'

/** What a worker's death counts for a job that was at work, and for one that waited, for a stream or a device. */
const DEATH_AT_WORK = 5
const DEATH_WHILE_WAITING = 1
/** From so much on, at the same place of the job, it runs by itself. */
const SUSPECT_FROM = 10
/** So many deaths of a process that it had for itself, and it is given up. */
const CRASHES_MAX = 3
const PAUSE_MS = 1_000

const NONE: Deaths = { seen: 0, marker: '', count: 0, isAtWork: false, crashes: 0 }

type CountedJob = Pick<Job<WriteJob>, 'data' | 'stalledCounter' | 'updateData'>

/** Whether the job is to run in a process of its own. To be asked before each turn. `marker`: how far the job is. */
export async function isSuspect(job: CountedJob, marker: string): Promise<boolean> {
  const known = job.data.deaths ?? NONE
  const seen = job.stalledCounter
  const before = known.marker === marker ? known : { ...NONE, isAtWork: known.isAtWork }
  const death = known.isAtWork ? DEATH_AT_WORK : DEATH_WHILE_WAITING
  const count = before.count + (seen > known.seen ? death : 0)
  if (seen > known.seen || known.isAtWork)
    await keep(job, { ...before, seen, marker, count, isAtWork: false })
  return count >= SUSPECT_FROM
}

/** The job does more than wait from now on. */
export async function beginWork(job: CountedJob, marker: string): Promise<void> {
  const known = job.data.deaths ?? { ...NONE, seen: job.stalledCounter }
  if (known.isAtWork) return
  // Nothing is lost when Redis is away: a death counts less then.
  await keep(job, { ...known, marker, isAtWork: true }).catch(() => undefined)
}

/** The process that the job had for itself has died. Whether the job is to be given up; throws Later otherwise. */
export async function isPoison(job: CountedJob): Promise<boolean> {
  const known = job.data.deaths ?? NONE
  const crashes = known.crashes + 1
  if (crashes >= CRASHES_MAX) return true
  await keep(job, { ...known, crashes })
  throw new Later(PAUSE_MS * 2 ** crashes)
}

function keep(job: CountedJob, deaths: Deaths): Promise<void> {
  return job.updateData({ ...job.data, deaths })
}
