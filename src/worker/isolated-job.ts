/** A job in a process of its own: what is asked of it, what it answers, and what its end without an answer means. */
import type { ChildProcess } from 'node:child_process'
import { addAbortListener, once } from 'node:events'
import type { SpanJob, WriteJob, WritingJob } from '../gateway/export/export-jobs.ts'

/** Plain JSON. */
export type IsolatedRequest =
  | { readonly kind: 'span'; readonly job: SpanJob }
  | { readonly kind: 'write'; readonly job: WritingJob }

/** laterMs: to be run again then, without fault. defect: what the log of the process describes. */
export type IsolatedAnswer =
  | { readonly turn: 'done' | 'waits-for-spans' }
  | { readonly laterMs: number }
  | { readonly defect: string }

/**
 * Has the process run the job. undefined: it died before it answered. When `stopping` aborts, the process is told so,
 * and lets others have the job.
 */
export async function runIsolated(
  child: ChildProcess,
  request: object,
  stopping: AbortSignal,
): Promise<IsolatedAnswer | undefined> {
  using _stop = addAbortListener(stopping, () => child.kill('SIGTERM'))
  let answer: IsolatedAnswer | undefined
  child.once('message', (message) => {
    answer = message as IsolatedAnswer
  })
  // Its last words are read before its channel closes, which may be after its end. What cannot be started is dead.
  const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')]).catch(() => undefined)
  child.send(request, () => undefined)
  await ended
  return answer
}

/** What the job that writes an export is for its children, as plain JSON. */
export function writingJob({ id, data, priority, queueQualifiedName }: WritingJob): WritingJob {
  const { exportId }: WriteJob = data
  return { ...(id === undefined ? {} : { id }), data: { exportId }, priority, queueQualifiedName }
}
