/**
 * A lease and the streams under it. One lease for all devices of a download, then all streams are opened concurrently:
 * either every stream has begun, or everything has been released and the error says which devices failed.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError, type ErrorCode } from '../../../shared/base/error.ts'
import { listText } from '../../../shared/base/list-text.ts'
import { Span } from '../../../shared/base/spans.ts'
import type { DeviceClient } from '../../device/device-client.ts'
import { FREED_LATE_MS, isForeign } from '../../device/device-kind.ts'
import { callerLabel } from '../../device/device-request.ts'
import { stateOf } from '../../fleet/device-identity.ts'
import type { Fleet } from '../../fleet/fleet.ts'
import type { DownloadPlan, DownloadStep } from '../../fleet/plan/plan.ts'
import type { Lease, LeaseClass, QueuePlace } from '../../lease/lease.ts'
import type { LeaseScheduler } from '../../lease/lease-scheduler.ts'
import { explained, refuseLostCaptures } from '../proof/foreign-capture.ts'
import { hasJustEnded, mayBeRefusal } from '../proof/possible-refusal.ts'
import { openSource, type Source } from './source.ts'

export interface StreamParts {
  readonly leases: LeaseScheduler
  readonly fleet: Fleet
  readonly startTimeoutMs: number
}

export interface StreamRequest {
  /** The id of the caller's request, under which the queue shows the lease. */
  readonly id: string
  readonly user: string
  /** Bulk work leaves one stream of each device to interactive users. */
  readonly class: LeaseClass
  /** How long to wait for a free stream on every device. */
  readonly waitMs: number
  /** As LeaseRequest.hasBegun. */
  readonly hasBegun?: boolean
  readonly signal: AbortSignal
  readonly onPosition: (place: QueuePlace) => void
  /** Called with the waiting time when the lease is granted. */
  readonly onWaited: (waitedMs: number) => void
}

type OnError = 'fail' | 'partial'

export interface OpenedStreams {
  /** One per step, in the order of the plan; undefined for a device that is left out. */
  readonly sources: readonly (Source | undefined)[]
  /** Why devices are left out, by name. */
  readonly failures: ReadonlyMap<string, CapfleetError>
}

/** Opens the stream of one step again, under the lease that the download has at that time. */
export type ReopenStep = (step: DownloadStep, signal: AbortSignal) => Promise<Source>

/** Disposing it ends the streams and returns the lease. */
export class LeasedStreams implements AsyncDisposable {
  readonly #lease: Lease
  readonly #plan: DownloadPlan
  readonly #parts: StreamParts
  readonly #deadlineMs: number
  /** Whether the lease was granted only after another one ended. */
  #hasWaited: boolean
  /** The last stream of each device. */
  readonly #sources = new Map<string, Source>()
  /** Devices whose streams have not been opened yet. */
  readonly #unopened: Set<string>
  /** Streams that the download does not wait for any more, but that its devices still count. */
  readonly #kept = new Set<Promise<unknown>>()
  /** The device of each failure that may have been caused by the stream limit. */
  readonly #crowded = new WeakMap<CapfleetError, string>()

  /** Waits for the lease; the caller has to open the streams. Fails like the scheduler. */
  static async acquire(
    plan: DownloadPlan,
    parts: StreamParts,
    request: StreamRequest,
  ): Promise<LeasedStreams> {
    const devices = plan.steps.map((step) => step.device)
    const deadlineMs = performance.now() + request.waitMs
    const wait = new Span('queue wait', 'internal')
    const lease = await parts.leases.acquire({ ...request, devices }).catch((error: unknown) => {
      wait.end(error)
      throw error
    })
    wait.end()
    request.onWaited(lease.waitedMs)
    return new LeasedStreams(lease, plan, parts, deadlineMs)
  }

  private constructor(lease: Lease, plan: DownloadPlan, parts: StreamParts, deadlineMs: number) {
    this.#lease = lease
    this.#plan = plan
    this.#parts = parts
    this.#deadlineMs = deadlineMs
    this.#hasWaited = lease.waitedMs > AT_ONCE_MS
    this.#unopened = new Set(plan.steps.map((step) => step.device))
  }

  get waitedMs(): number {
    return this.#lease.waitedMs
  }

  /** Aborts when the lease can no longer be relied on. */
  get lost(): AbortSignal {
    return this.#lease.lost
  }

  /** Opens all streams of the plan. partial: a device that cannot be read is left out, provided that another can be. */
  async open(onError: OnError, signal: AbortSignal): Promise<OpenedStreams> {
    const opened = await this.#inTurn(signal, () => this.#openAll(signal, onError))
    signal.throwIfAborted()
    this.#unopened.clear()
    this.#lease.opened()
    return opened
  }

  /** Opens one stream, of a device that broke off or of a download that was parked. */
  readonly reopen: ReopenStep = async (step, signal) => {
    this.#lease.reopening()
    // Its stream broke off: that of a download that was parked had another lease.
    if (isForeign(step.deviceKind) && this.#sources.has(step.device))
      this.#parts.fleet.get(step.device).breaker.brokeOff()
    const open = () => this.#openStep(step, signal)
    // The other devices of a merge have their streams; this one is retried on its own.
    const source = this.#plan.kind === 'relay' ? await this.#inTurn(signal, open) : await open()
    if (this.#unopened.size === 0) this.#lease.opened()
    return source
  }

  /**
   * Opens another stream of a device whose stream has ended, for instance to count. The device counts it once it has
   * begun: until then the scheduler does not rely on it.
   */
  async openAnother<Opened>(open: () => Promise<Opened>): Promise<Opened> {
    this.#lease.reopening()
    const opened = await open()
    if (this.#unopened.size === 0) this.#lease.opened()
    return opened
  }

  /** The lease is returned only once no stream under it is open; those that were kept are not waited for here. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const source of this.#sources.values()) source[Symbol.dispose]()
    const giveBack = () => this.#lease[Symbol.asyncDispose]()
    if (this.#kept.size > 0) void this.#keptEnded().then(giveBack)
    else await giveBack()
  }

  #keep(work: Promise<unknown>): void {
    this.#kept.add(work)
    void work.then(() => this.#kept.delete(work))
  }

  async #keptEnded(): Promise<true> {
    while (this.#kept.size > 0) await Promise.all(this.#kept)
    return true
  }

  /** Whether the streams that were kept end in time. Fails with the signal's reason. */
  async #endsWithin(waitMs: number, signal: AbortSignal): Promise<boolean> {
    if (this.#kept.size === 0) return true
    const late = new AbortController()
    const waiting = AbortSignal.any([signal, late.signal])
    try {
      return await Promise.race([this.#keptEnded(), delay(waitMs, false, { signal: waiting })])
    } finally {
      late.abort()
    }
  }

  /** If a device is busy with streams of others, returns the lease to the queue. */
  async #inTurn<Opened>(signal: AbortSignal, open: () => Promise<Opened>): Promise<Opened> {
    for (;;) {
      try {
        return await open()
      } catch (error) {
        const waitMs = Math.max(0, this.#deadlineMs - performance.now())
        const busy = waitMs === 0 ? undefined : (busyDevice(error) ?? this.#crowdedDevice(error))
        if (busy === undefined) throw error
        this.#hasWaited = true
        if (!(await this.#endsWithin(waitMs, signal))) throw error
        await this.#lease
          .requeue(busy, { signal, waitMs, busyMs: retryAfterMs(error) })
          .catch((late: unknown) => {
            // A device that has not said that it is busy may have failed for another reason: its own message is more
            // useful.
            throw isQueueTimeout(late) && this.#crowdedDevice(error) !== undefined ? error : late
          })
      }
    }
  }

  #isWorthAWait(error: unknown): boolean {
    return performance.now() < this.#deadlineMs && this.#crowdedDevice(error) !== undefined
  }

  #crowdedDevice(error: unknown): string | undefined {
    return mayBeRefusal(error) ? this.#crowded.get(error) : undefined
  }

  /**
   * Whether a third-party device may reject a stream over its limit in its own way: with a text, an empty answer, a
   * reset or silence. That is likely only while others have streams there; check before asking the device, because
   * those may end before its rejection arrives.
   */
  async #mayBeCrowded({ device, deviceKind }: DownloadStep): Promise<boolean> {
    if (!isForeign(deviceKind)) return false
    const [use] = await this.#parts.leases.use([device]).catch(() => [])
    return use !== undefined && use.used > 1
  }

  /** The first failure that matters ends the others, because the download cannot succeed any more. */
  async #openAll(outer: AbortSignal, onError: OnError): Promise<OpenedStreams> {
    const { steps } = this.#plan
    const [only, ...more] = steps
    if (only !== undefined && more.length === 0) {
      return { sources: [await this.#openStep(only, outer)], failures: NO_FAILURES }
    }
    const others = new AbortController()
    const signal = AbortSignal.any([outer, others.signal])
    const fatal: unknown[] = []
    const failures = new Map<string, CapfleetError>()
    const sources = await Promise.all(
      steps.map(async (step) => {
        try {
          return await this.#openStep(step, signal)
        } catch (error) {
          if (error === OTHER_FAILED) return undefined
          const isLeftOut = onError === 'partial' && isDeviceFault(error) && !this.#isWorthAWait(error)
          if (isLeftOut) failures.set(step.device, error as CapfleetError)
          else {
            fatal.push(error)
            others.abort(OTHER_FAILED)
          }
          return undefined
        }
      }),
    )
    const nothingLeft = failures.size === steps.length
    if (fatal.length === 0 && !nothingLeft) return { sources, failures }
    for (const source of sources) source?.[Symbol.dispose]()
    throw joinFailures(nothingLeft ? [...failures.values()] : fatal)
  }

  /**
   * A third-party device may notice late that a stream has ended: one that ended here just now, or the one that this
   * download waited for.
   */
  async #patiently(
    { device, deviceKind }: DownloadStep,
    open: () => Promise<Source>,
    { client, signal }: { readonly client: DeviceClient; readonly signal: AbortSignal },
  ): Promise<Source> {
    for (const pauseMs of isForeign(deviceKind) ? FREED_LATE_MS : []) {
      // Its refusal may take longer than it counts the stream.
      const wasBusy = this.#hasWaited || hasJustEnded(client)
      try {
        return await open()
      } catch (error) {
        const isRefused = busyDevice(error) === device || mayBeRefusal(error)
        const isLate = performance.now() + pauseMs > this.#deadlineMs
        const mayCountLate = wasBusy || hasJustEnded(client)
        // A device that says when it has a stream, or nothing at all, is not asked sooner.
        if (!isRefused || !mayCountLate || isLate || retryAfterMs(error) !== undefined || isSilence(error))
          throw error
      }
      await delay(pauseMs, undefined, { signal })
    }
    return await open()
  }

  async #openStep(step: DownloadStep, signal: AbortSignal): Promise<Source> {
    const { fleet, startTimeoutMs } = this.#parts
    const member = fleet.get(step.device)
    const { client, breaker } = member
    const asked = { step, query: this.#plan.query, signal }
    await refuseLostCaptures(member, asked)
    const open = () =>
      breaker.run(() =>
        openSource(client, step, {
          signal,
          caller: callerLabel(this.#lease.user),
          startTimeoutMs,
          patienceMs: Math.max(startTimeoutMs, this.#deadlineMs - performance.now()),
          keeper: { signal: this.#lease.lost, keep: (work) => this.#keep(work) },
          ...(isForeign(step.deviceKind) ? { state: stateOf(member) } : {}),
          onReopening: () => this.#lease.reopening(),
          isRelayed: this.#plan.kind === 'relay',
        }),
      )
    const mayBeCrowded = this.#mayBeCrowded(step)
    const source = await this.#patiently(step, open, { client, signal }).catch(async (error: unknown) => {
      const failure = isForeign(step.deviceKind) ? await explained(error, member, asked) : error
      if (mayBeRefusal(failure) && (await mayBeCrowded)) this.#crowded.set(failure, step.device)
      throw failure
    })
    this.#sources.set(step.device, source)
    this.#unopened.delete(step.device)
    return source
  }
}

/** A lease that is free is usually granted within this time; if not, the device is asked once more than necessary. */
const AT_ONCE_MS = 50

const MS_PER_S = 1_000

function isQueueTimeout(error: unknown): boolean {
  return error instanceof CapfleetError && error.code === 'queue-timeout'
}

function isSilence(error: unknown): boolean {
  return error instanceof CapfleetError && error.code === 'device-timeout'
}

/** A single device must not block everyone's retries for longer than this. */
const RETRY_AFTER_MAX_MS = 30_000

/** How long a busy device asked to be left alone, if it did. */
export function retryAfterMs(error: unknown): number | undefined {
  const { retryAfterS } = error instanceof CapfleetError ? error.details : {}
  return retryAfterS === undefined ? undefined : Math.min(retryAfterS * MS_PER_S, RETRY_AFTER_MAX_MS)
}

const NO_FAILURES: ReadonlyMap<string, CapfleetError> = new Map()
const OTHER_FAILED = new Error('another device of the download failed')

/** Whether another device may succeed. Any other error is caused by the request and is the same everywhere. */
export function isDeviceFault(error: unknown): error is CapfleetError {
  if (!(error instanceof CapfleetError)) return false
  if (error.code === 'download-slots-exhausted') return false
  // Reported in the device's own words: other devices may accept the same request.
  const isWorded = error.details.members?.deviceStatus !== undefined
  return error.kind.blame === 'device' || ONE_DEVICES_OWN.has(error.code) || isWorded
}

/** Errors that are not the device's fault but concern it alone: our credentials there, the range of its store. */
const ONE_DEVICES_OWN: ReadonlySet<ErrorCode> = new Set(['device-rejected', 'aged-out'])

function busyDevice(error: unknown): string | undefined {
  if (!(error instanceof CapfleetError) || error.code !== 'download-slots-exhausted') return undefined
  const [device] = devicesOf(error)
  return device
}

/** The first error, with the names of all devices that failed at the same time. */
export function joinFailures(failures: readonly unknown[]): unknown {
  const [first, ...rest] = failures
  if (!(first instanceof CapfleetError) || rest.length === 0) return first
  const ours = failures.filter((failure) => failure instanceof CapfleetError)
  // Identical messages are shown once.
  const messages = new Set(ours.map((failure) => failure.message))
  return new CapfleetError(first.code, listText([...messages], '; '), {
    ...first.details,
    members: { ...first.details.members, devices: [...new Set(ours.flatMap(devicesOf))] },
  })
}

function devicesOf(error: CapfleetError): readonly string[] {
  return (error.details.members?.devices as readonly string[] | undefined) ?? []
}
