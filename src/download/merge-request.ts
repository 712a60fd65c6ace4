/** What a merge is made of, and what it offers to the download that it is the body of. */
import type { CapfleetError } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { DownloadPlan, DownloadStep } from '../fleet/plan.ts'
import type { DownloadBody } from './download-body.ts'
import type { DeviceReport } from './download-report.ts'
import type { ResumeTimings } from './resume-timings.ts'
import type { Source } from './source.ts'

/** Opens the stream of one step again, under the lease that the download has already. */
export type ReopenStep = (step: DownloadStep, signal: AbortSignal) => Promise<Source>

/** A device's clock minus the gateway's, and the bound of the error. */
export interface DeviceClock {
  readonly offsetNs: bigint
  readonly errorNs: bigint
}

export interface MergeOptions {
  /** partial: goes on without a device that cannot be read any more. */
  readonly onError: 'fail' | 'partial'
  /** Drops a packet that another device had within so long before. */
  readonly dedupNs: bigint | undefined
  /** Subtracts each device's clock offset from its timestamps. */
  readonly align: boolean
}

export const PLAIN_MERGE: MergeOptions = { onError: 'fail', dedupNs: undefined, align: false }

export interface MergeRequest {
  readonly plan: DownloadPlan
  /** In the order of the plan's steps; undefined for a device that failed at opening (OnError=partial). */
  readonly sources: readonly (Source | undefined)[]
  /** Why the sources that are undefined are missing, by device. */
  readonly failures?: ReadonlyMap<string, CapfleetError>
  readonly options: MergeOptions
  readonly reopen: ReopenStep
  readonly clockOf?: (device: string) => DeviceClock | undefined
  /** Hears of clocks that are off. */
  readonly log?: Log
  /** For tests; default RESUME_TIMINGS. */
  readonly timings?: ResumeTimings
  /** Ends the merge, also while it waits for a device. */
  readonly signal: AbortSignal
}

export interface MergedBody extends DownloadBody {
  /** Live: one entry per step of the plan, in its order. */
  report(): readonly DeviceReport[]
  /** Headers that only a merge has (Capfleet-Skew-Ns, Capfleet-Aged-Out-Before), for the response's head. */
  head(): Readonly<Record<string, string>>
  /** Packets that Dedup left out. */
  readonly duplicates: bigint
  /**
   * Closes the streams of all devices, so that their slots can be given to others. What is merged
   * already still goes out; then the body waits for unpark(). Not for a body that has ended.
   */
  park(): void
  /** Goes on where park() stopped; a device that cannot be asked again fails the body as ever. */
  unpark(reopen: ReopenStep): void
  /** Once, when nobody looks at a chunk any more, also not the kernel: their memory is used again. */
  release(): void
}
