import { CapfleetError, type ErrorCode } from '../base/error.ts'
import { callerLabel } from '../device/device-request.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { DownloadPlan, DownloadStep } from '../fleet/plan.ts'
import type { Lease, LeaseClass, QueuePlace } from '../lease/lease.ts'
import type { LeaseScheduler } from '../lease/lease-scheduler.ts'
import type { DownloadOutcomes } from './download-outcomes.ts'
import type { ReopenStep } from './merge-request.ts'
import { type OpenOptions, openSource, type Source } from './source.ts'

export interface OpenParts {
  readonly leases: LeaseScheduler
  readonly fleet: Fleet
  readonly startTimeoutMs: number
  readonly metrics: DownloadOutcomes
}

export interface OpenRequest {
  /** Of the request; the lease is shown under it in the queue. */
  readonly id: string
  readonly user: string
  /** For a free stream on every device. */
  readonly waitMs: number
  readonly signal: AbortSignal
  /** partial: a device that cannot be read is left out, as long as there is another. */
  readonly onError: 'fail' | 'partial'
  readonly onPosition: (place: QueuePlace) => void
}

/** All streams of a download, begun. Whoever gets it must dispose it; that gives the leases back. */
export interface OpenDownload extends AsyncDisposable {
  /** In the order of the plan; undefined for a device that is left out. */
  readonly sources: readonly (Source | undefined)[]
  /** Why devices are left out, by name. */
  readonly failures: ReadonlyMap<string, CapfleetError>
  readonly waitedMs: number
  /** Aborts when the leases can no longer be vouched for. */
  readonly lost: AbortSignal
  /** Opens a stream of a device that broke off, under the same lease. */
  readonly reopen: ReopenStep
}

/**
 * The part of a download that may still become an HTTP status: one lease for all devices, then all
 * streams opened at the same time. Either every stream has begun or everything has been given back
 * and the error says which devices failed.
 */
export async function openDownload(
  plan: DownloadPlan,
  parts: OpenParts,
  request: OpenRequest,
): Promise<OpenDownload> {
  const { signal, waitMs, onError } = request
  const devices = plan.steps.map((step) => step.device)
  // A device that is known to be down is not worth a wait.
  if (onError === 'fail') for (const device of devices) parts.fleet.get(device).breaker.check()
  const deadlineMs = performance.now() + waitMs
  const lease = await parts.leases.acquire({ ...request, devices, class: classOf(plan) })
  let sources: OpenDownload['sources'] = []
  // No place is given back under an open stream.
  const end = async (): Promise<void> => {
    for (const source of sources) source?.[Symbol.dispose]()
    await lease[Symbol.asyncDispose]()
  }
  try {
    parts.metrics.waited(lease.waitedMs)
    const opened = await openUnder(lease, plan, parts, { signal, onError, deadlineMs })
    sources = opened.sources
    signal.throwIfAborted()
    lease.opened()
    return {
      ...opened,
      waitedMs: lease.waitedMs,
      lost: lease.lost,
      reopen: reopenUnder(lease, [], parts),
      [Symbol.asyncDispose]: end,
    }
  } catch (error) {
    await end()
    throw error
  }
}

/** What is followed may hold its place for ever: somebody at a screen keeps one of the device's. */
function classOf({ query }: DownloadPlan): LeaseClass {
  return query.follow ? 'bulk' : 'interactive'
}

interface OpenAllOptions {
  readonly signal: AbortSignal
  readonly onError: 'fail' | 'partial'
  /** Until when (performance.now()) a place may be waited for. */
  readonly deadlineMs: number
}

type OpenedAll = Pick<OpenDownload, 'sources' | 'failures'>

export interface ReacquireOptions extends Pick<OpenRequest, 'id' | 'user' | 'signal' | 'waitMs'> {
  readonly devices: readonly string[]
}

/** A new lease for a download that had given its own back, and how to open streams under it. */
export async function reacquire(
  parts: OpenParts,
  request: ReacquireOptions,
): Promise<AsyncDisposable & Pick<OpenDownload, 'reopen' | 'lost'>> {
  const lease = await parts.leases.acquire({ ...request, class: 'interactive' })
  parts.metrics.waited(lease.waitedMs)
  return {
    lost: lease.lost,
    reopen: reopenUnder(lease, request.devices, parts),
    [Symbol.asyncDispose]: () => lease[Symbol.asyncDispose](),
  }
}

/** Opens streams one by one, and tells the lease when none of its devices is without one any more. */
function reopenUnder(lease: Lease, withoutStream: readonly string[], parts: OpenParts): ReopenStep {
  const without = new Set(withoutStream)
  return async (step, signal) => {
    without.add(step.device)
    lease.reopening()
    const source = await openStep(step, parts, { lease, signal, isRelayed: false })
    without.delete(step.device)
    if (without.size === 0) lease.opened()
    return source
  }
}

/** A device that is busy with others' streams sends the lease back into the queue. */
async function openUnder(
  lease: Lease,
  plan: DownloadPlan,
  parts: OpenParts,
  options: OpenAllOptions,
): Promise<OpenedAll> {
  for (;;) {
    try {
      return await openAll(plan, parts, { ...options, lease })
    } catch (error) {
      const busy = busyDevice(error)
      const waitMs = Math.max(0, options.deadlineMs - performance.now())
      if (busy === undefined || waitMs === 0) throw error
      await lease.requeue(busy, { signal: options.signal, waitMs })
    }
  }
}

/** The first failure that matters ends the others: the download cannot succeed any more. */
async function openAll(
  { kind, steps }: DownloadPlan,
  parts: OpenParts,
  options: OpenAllOptions & { readonly lease: Lease },
): Promise<OpenedAll> {
  const [only, ...more] = steps
  if (only !== undefined && more.length === 0) {
    const { lease, signal } = options
    const source = await openStep(only, parts, { lease, signal, isRelayed: kind === 'relay' })
    return { sources: [source], failures: NO_FAILURES }
  }
  const others = new AbortController()
  const signal = AbortSignal.any([options.signal, others.signal])
  const fatal: unknown[] = []
  const failures = new Map<string, CapfleetError>()
  const sources = await Promise.all(
    steps.map(async (step) => {
      try {
        return await openStep(step, parts, { lease: options.lease, signal, isRelayed: kind === 'relay' })
      } catch (error) {
        if (error === OTHER_FAILED) return undefined
        if (options.onError === 'partial' && isDeviceFault(error)) failures.set(step.device, error)
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

const NO_FAILURES: ReadonlyMap<string, CapfleetError> = new Map()
const OTHER_FAILED = new Error('another device of the download failed')

function openStep(
  step: DownloadStep,
  parts: OpenParts,
  { lease, ...options }: Required<Pick<OpenOptions, 'signal' | 'isRelayed'>> & { readonly lease: Lease },
): Promise<Source> {
  const { client, breaker } = parts.fleet.get(step.device)
  const { startTimeoutMs } = parts
  const opening = { ...options, caller: callerLabel(lease.user), startTimeoutMs }
  return breaker.run(() => openSource(client, step, opening))
}

/** What another device may do better. Any other error is one of the request and the same everywhere. */
function isDeviceFault(error: unknown): error is CapfleetError {
  if (!(error instanceof CapfleetError)) return false
  return error.kind.blame === 'device' || ONE_DEVICES_OWN.has(error.code)
}

/** Not its fault, but its own: our credentials there, and the range of its store. */
const ONE_DEVICES_OWN: ReadonlySet<ErrorCode> = new Set(['device-rejected', 'aged-out'])

function busyDevice(error: unknown): string | undefined {
  if (!(error instanceof CapfleetError) || error.code !== 'download-slots-exhausted') return undefined
  const [device] = devicesOf(error)
  return device
}

/** The first error, with the names of all devices that failed at the same time. */
function joinFailures(failures: readonly unknown[]): unknown {
  const [first, ...rest] = failures
  if (!(first instanceof CapfleetError) || rest.length === 0) return first
  const ours = failures.filter((failure) => failure instanceof CapfleetError)
  return new CapfleetError(first.code, ours.map((failure) => failure.message).join('; '), {
    ...first.details,
    members: { ...first.details.members, devices: [...new Set(ours.flatMap(devicesOf))] },
  })
}

function devicesOf(error: CapfleetError): readonly string[] {
  return (error.details.members?.devices as readonly string[] | undefined) ?? []
}
