/** The job that fetches a span, and what its end means for the export. */

import type { SpanJob } from '../../gateway/export/export-jobs.ts'
import { exportLeaseId } from '../../gateway/export/export-lease.ts'
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import { type ExportParts, Later } from '../../gateway/export/export-parts.ts'
import {
  type ExportRecord,
  type ExportWindow,
  type Hole,
  LIVE_STATES,
} from '../../gateway/export/export-record.ts'
import type { SpanFiles, SpanOutcome } from '../../gateway/export/spool.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import { endTrouble, judgeFailure } from './device-trouble.ts'
import { pauseExport, reported } from './fail-export.ts'
import { fetchSpan } from './fetch-span.ts'
import { JobWatch, NOT_WANTED } from './job-watch.ts'
import { refuseReplaced } from './same-devices.ts'

export interface RunningJob {
  /** Unique for this attempt of the job. */
  readonly attempt: string
  /** Aborts when the worker stops. */
  readonly stopping: AbortSignal
  /** Called when the job begins to do more than wait. */
  readonly onWork: () => void
}

/**
 * When this resolves, the span is in the spool, or its outcome says why not, or it is no longer wanted. Throws Later,
 * or internal errors.
 */
export async function runSpan(parts: ExportParts, job: SpanJob, running: RunningJob): Promise<void> {
  const { exportId, window, device } = job
  const record = await parts.store.find(exportId)
  if (record === undefined || !isAwaited(record, window)) return
  const { order } = record
  const files = parts.spool.span(exportId, window, order.plan.devices.indexOf(device))
  let bytes = 0
  await using watch = new JobWatch({
    store: parts.store,
    order,
    stopping: running.stopping,
    progress: () => ({ fetching: { device, bytes } }),
  })
  try {
    await refuseReplaced(parts, order, device, watch.signal)
    await fetchSpan(parts, {
      order,
      window,
      device,
      files,
      leaseId: exportLeaseId(exportId, running.attempt),
      waitMs: parts.limits.leaseWaitMs,
      checkpointBytes: parts.limits.checkpointBytes,
      signal: watch.signal,
      onStream: running.onWork,
      onProgress: (now, chunkBytes) => {
        bytes = now
        parts.outcomes.fetched(chunkBytes)
      },
    })
    parts.outcomes.span('fetched')
    await endTrouble(parts, order, device)
    if (record.state === 'paused')
      await parts.store.change(order, { state: 'running', error: null }, { states: ['paused'] })
  } catch (error) {
    // Code that is ended by the signal may throw an error of its own.
    const why = watch.signal.aborted ? watch.signal.reason : error
    await meetFailure(parts, { order, window, device, files }, why, running)
  }
}

/** A late job may be for a window that is in the files already. */
function isAwaited({ state, checkpoint }: ExportRecord, { index }: ExportWindow): boolean {
  return LIVE_STATES.includes(state) && (checkpoint?.ordered ?? []).some((window) => window.index === index)
}

interface FailedSpan {
  readonly order: ExportOrder
  readonly window: ExportWindow
  readonly device: string
  readonly files: SpanFiles
}

async function meetFailure(
  parts: ExportParts,
  span: FailedSpan,
  error: unknown,
  { stopping }: RunningJob,
): Promise<void> {
  const { order, window, device, files } = span
  const finish = async (outcome: Partial<SpanOutcome>) => {
    await files.finish({ ...NOTHING, ...outcome })
    parts.outcomes.span('missing')
  }
  if (error === NOT_WANTED) return
  if (stopping.aborted) throw new Later(0)
  if (!(error instanceof CapfleetError)) throw error
  if (error.code === 'export-store-full') return await pauseExport(parts, order, error)
  const whole = { fromNs: window.beginNs, toNs: window.endNs }
  if (error.code === 'aged-out') {
    const hole: Hole = { ...whole, final: true, error: reported(error) }
    return await finish({ holes: [hole] })
  }
  const failure = await judgeFailure(parts, order, device, error).catch((thrown: unknown) => thrown)
  if (!(failure instanceof CapfleetError) || isOurs(failure)) throw failure
  const isMissing = failure.kind.blame === 'device' || failure.code === 'device-rejected'
  if (isMissing && order.onMissing === 'partial') {
    const hole: Hole = { ...whole, final: false, error: reported(failure) }
    return await finish({ holes: [hole] })
  }
  await finish({ fatal: reported(failure) })
}

const NOTHING: SpanOutcome = { file: null, bytes: 0, holes: [], fatal: null }

/** An internal or temporary error: neither says anything about the order. */
function isOurs({ kind, code }: CapfleetError): boolean {
  return kind.blame === 'ours' && code !== 'device-rejected' && code !== 'not-implemented'
}
