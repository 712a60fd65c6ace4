/** A download from its plan to its bytes: a lease, the devices' streams under it, and the body that they make. */
import { addAbortListener } from 'node:events'
import type { Log } from '../../../shared/base/log.ts'
import { type DownloadPlan, withinProfiles } from '../../fleet/plan/plan.ts'
import { countDamage } from '../lines/device-count.ts'
import {
  LeasedStreams,
  type OpenedStreams,
  type StreamParts,
  type StreamRequest,
} from '../stream/leased-streams.ts'
import type { Body } from './body.ts'
import { type Continuation, type ContinuedFrom, continueFrom, restOfBody } from './continue-from.ts'
import { type MergeOptions, mergedBody } from './merged-body.ts'
import { refuseSmallFile } from './merged-pcapng.ts'
import { RelayedBody } from './relayed-body.ts'

export interface FetchParts extends StreamParts {
  readonly log: Log
  /** Pause before a device that broke off in a merge is asked a second time; doubled for each later attempt. */
  readonly retryPauseMs: number
}

export interface FetchRequest extends StreamRequest {
  readonly options: MergeOptions
  /** What the caller already has of the body. Default: nothing. */
  readonly from?: ContinuedFrom | undefined
  /** Called when the lease can no longer be relied on; the streams must end. */
  readonly onLost: (reason: unknown) => void
}

const RETRIES = { attempts: 5, withinMs: 60_000 }

/**
 * The owner must dispose it, which ends the streams and returns the lease. Memory of chunks still in use stays until
 * the body itself is disposed.
 */
export class FetchedDownload implements AsyncDisposable {
  readonly body: Body
  readonly #plan: DownloadPlan
  readonly #parts: FetchParts
  readonly #request: FetchRequest
  /** The lease and its streams; undefined while the download is parked, and after its end. */
  #streams: LeasedStreams | undefined

  /**
   * Waits for the lease, opens all streams and reads their beginnings, including everything before the point where a
   * continued body resumes. Up to here a failure can still become an HTTP status.
   */
  static async open(
    planned: DownloadPlan,
    parts: FetchParts,
    request: FetchRequest,
  ): Promise<FetchedDownload> {
    const devices = planned.steps.map(({ device }) => device)
    await parts.fleet.knowKinds(devices)
    if (request.options.align) await parts.fleet.knowClocks(devices)
    const plan = withinProfiles(planned, parts.fleet, { isBulk: request.class === 'bulk' })
    refuseSmallFile(plan)
    const continuation = request.from && continueFrom(plan, request.from)
    const asked = continuation?.plan ?? plan
    // Do not wait for a device that is known to be down.
    if (request.options.onError === 'fail') {
      for (const { device } of plan.steps) parts.fleet.get(device).breaker.check()
    }
    const streams = await LeasedStreams.acquire(asked, parts, request)
    let fetched: FetchedDownload | undefined
    // A download that was parked has others by then.
    const streamsNow = () => (fetched === undefined ? undefined : fetched.#streams) ?? streams
    try {
      const signal = AbortSignal.any([request.signal, streams.lost])
      const opened = await streams.open(request.options.onError, signal)
      const body = await openBody({ plan, asked, streamsNow, opened, continuation }, parts, request)
      fetched = new FetchedDownload({ plan: asked, parts, request, streams, body })
      return fetched
    } catch (error) {
      await streams[Symbol.asyncDispose]()
      throw error
    }
  }

  private constructor(made: {
    readonly plan: DownloadPlan
    readonly parts: FetchParts
    readonly request: FetchRequest
    readonly streams: LeasedStreams
    readonly body: Body
  }) {
    this.body = made.body
    this.#plan = made.plan
    this.#parts = made.parts
    this.#request = made.request
    this.#hold(made.streams)
  }

  /** Whether others are waiting for one of the devices. */
  async isWanted(): Promise<boolean> {
    const uses = await this.#parts.leases.use(this.#plan.steps.map((step) => step.device))
    return uses.some(({ waiting }) => waiting > 0)
  }

  /** Gives up streams and lease until goOn(). REQUIRES: the body is parkable. */
  async park(): Promise<void> {
    this.body.park()
    await this[Symbol.asyncDispose]()
  }

  /** Waits up to `waitMs` for a lease, and continues where the body stopped. */
  async goOn(waitMs: number): Promise<void> {
    const request = { ...this.#request, waitMs, hasBegun: true, onPosition: () => undefined }
    const streams = await LeasedStreams.acquire(this.#plan, this.#parts, request)
    if (request.signal.aborted) return streams[Symbol.asyncDispose]()
    this.#hold(streams)
    this.body.unpark(streams.reopen)
  }

  /** Call it when the body is no longer needed or has been read. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    const streams = this.#streams
    this.#streams = undefined
    await streams?.[Symbol.asyncDispose]()
  }

  #hold(streams: LeasedStreams): void {
    this.#streams = streams
    // A lease that was given back is lost without harm.
    addAbortListener(streams.lost, () => {
      if (this.#streams === streams) this.#request.onLost(streams.lost.reason)
    })
  }
}

interface OpenedBody {
  readonly plan: DownloadPlan
  /** The part of the plan that the caller does not have. */
  readonly asked: DownloadPlan
  readonly streamsNow: () => LeasedStreams
  readonly opened: OpenedStreams
  readonly continuation: Continuation | undefined
}

async function openBody(
  { plan, asked, streamsNow, opened, continuation }: OpenedBody,
  { fleet, log, retryPauseMs }: FetchParts,
  { options, from, user, signal }: FetchRequest,
): Promise<Body> {
  const { startBytes = 0, headerBytes = 0 } = continuation ?? {}
  const [only] = opened.sources
  const body =
    plan.kind === 'relay' && only !== undefined
      ? new RelayedBody({ plan, source: only, startBytes, headerBytes, signal })
      : await mergedBody({
          ...opened,
          plan: asked,
          options,
          reopen: streamsNow().reopen,
          countDamage: (device, range, signal) =>
            countDamage(fleet.get(device), plan.query, range, {
              user,
              signal,
              underLease: (open) => streamsNow().openAnother(open),
            }),
          clockOf: (device) => fleet.clockOf(device),
          siteOf: (device) => fleet.get(device).device.site,
          log,
          timings: { ...RETRIES, pauseMs: retryPauseMs },
          startBytes,
          signal,
        })
  if (continuation === undefined || from === undefined) return body
  return await restOfBody(body, continuation, from)
}
