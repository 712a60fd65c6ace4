/** A job in its own process: its request, its answer, and what it means if the process ends without an answer. */
import type { ChildProcess } from 'node:child_process'
import { addAbortListener, once } from 'node:events'
import type { SpanJob, WriteJob, WritingJob } from '../gateway/export/export-jobs.ts'

/** Plain JSON. */
export type IsolatedRequest =
  | { readonly kind: 'span'; readonly job: SpanJob }
  | { readonly kind: 'write'; readonly job: WritingJob }

/** laterMs: run again after this time, no error. defect: an internal error, described in the log of the process. */
export type IsolatedAnswer =
  | { readonly turn: 'done' | 'waits-for-spans' }
  | { readonly laterMs: number }
  | { readonly defect: string }

/**
 * Runs the job in the process. Returns undefined if it died before it answered. When `stopping` aborts, the process is
 * told to release the job to other workers.
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
  // Its last message is read before its channel closes, which may be after its end. A process that cannot be started
  // counts as dead.
  const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')]).catch(() => undefined)
  child.send(request, () => undefined)
  await ended
  return answer
}

/** The fields of the job that writes an export that its isolated process needs, as plain JSON. */
export function writingJob({ id, data, priority, queueQualifiedName }: WritingJob): WritingJob {
  const { exportId }: WriteJob = data
  return { ...(id === undefined ? {} : { id }), data: { exportId }, priority, queueQualifiedName }
}
