/**
 * A job that kills its worker takes down all other jobs running there. It cannot be distinguished from jobs that were
 * merely running when a worker died, so a job that was running more than once is isolated in a process of its own from
 * then on, and is given up if that process dies while its worker lives. That is all that a worker's death costs a job.
 */
import type { Job } from 'bullmq'
import type { Deaths, WriteJob } from '../gateway/export/export-jobs.ts'
import { Later } from '../gateway/export/export-parts.ts'

/** Weight of a worker's death for a job that was at work, and for one that was waiting for a stream or a device. */
const DEATH_AT_WORK = 5
const DEATH_WHILE_WAITING = 1
/** A job is isolated once its deaths at the same point have this total weight. */
const SUSPECT_FROM = 10
/** After this many deaths of its own process, the job is given up. */
const CRASHES_MAX = 3
const PAUSE_MS = 1_000

const NONE: Deaths = { seen: 0, marker: '', count: 0, isAtWork: false, crashes: 0 }

type CountedJob = Pick<Job<WriteJob>, 'data' | 'stalledCounter' | 'updateData'>

/** Whether the job must run in a process of its own. Call it before each turn. `marker`: the job's progress. */
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

/** Records that the job is doing more than waiting from now on. */
export async function beginWork(job: CountedJob, marker: string): Promise<void> {
  const known = job.data.deaths ?? { ...NONE, seen: job.stalledCounter }
  if (known.isAtWork) return
  // If Redis is unreachable nothing is lost: a death just counts less.
  await keep(job, { ...known, marker, isAtWork: true }).catch(() => undefined)
}

/** Called when the job's own process has died. Returns whether the job is to be given up; otherwise throws Later. */
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
