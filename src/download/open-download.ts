import { CapfleetError } from '../base/error.ts'
import type { DeviceClient } from '../fleet/device-client.ts'
import type { DownloadPlan, DownloadStep } from '../fleet/plan.ts'
import type { LeaseScheduler } from '../lease/lease-scheduler.ts'
import type { DownloadOutcomes } from './download-outcomes.ts'
import { openSource, type Source } from './source.ts'

export interface OpenParts {
  readonly leases: LeaseScheduler
  readonly clients: ReadonlyMap<string, DeviceClient>
  readonly startTimeoutMs: number
  readonly metrics: DownloadOutcomes
}

export interface OpenRequest {
  readonly user: string
  /** For a free stream on every device. */
  readonly waitMs: number
  readonly signal: AbortSignal
}

/** All streams of a download, begun. Whoever gets it must dispose it; that gives the leases back. */
export interface OpenDownload extends AsyncDisposable {
  /** In the order of the plan. */
  readonly sources: readonly Source[]
  /** Aborts when the leases can no longer be vouched for. */
  readonly lost: AbortSignal
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
  await using opening = new AsyncDisposableStack()
  const busyUntilMs = performance.now() + request.waitMs
  const devices = plan.steps.map((step) => step.device)
  const lease = opening.use(await parts.leases.acquire({ ...request, devices, class: 'interactive' }))
  parts.metrics.waited(lease.waitedMs)
  const sources = await openAll(plan.steps, parts, { ...request, busyUntilMs })
  for (const source of sources) opening.use(source)
  request.signal.throwIfAborted()
  const owned = opening.move()
  return { sources, lost: lease.lost, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** The first failure ends the others: the download cannot succeed any more. */
async function openAll(
  steps: readonly DownloadStep[],
  parts: OpenParts,
  request: OpenRequest & { readonly busyUntilMs: number },
): Promise<readonly Source[]> {
  const others = new AbortController()
  const signal = AbortSignal.any([request.signal, others.signal])
  const failures: unknown[] = []
  const opened = await Promise.all(
    steps.map(async (step) => {
      const client = parts.clients.get(step.device)
      if (client === undefined) throw new Error(`the plan names an unknown device ${step.device}`)
      try {
        return await openSource(client, step, { ...request, startTimeoutMs: parts.startTimeoutMs, signal })
      } catch (error) {
        if (error !== OTHER_FAILED) failures.push(error)
        others.abort(OTHER_FAILED)
        return undefined
      }
    }),
  )
  const sources = opened.filter((source) => source !== undefined)
  if (failures.length === 0 && sources.length === steps.length) return sources
  for (const source of sources) source[Symbol.dispose]()
  throw joinFailures(failures)
}

const OTHER_FAILED = new Error('another device of the download failed')

/** The first error, with the names of all devices that failed at the same time. */
function joinFailures(failures: readonly unknown[]): unknown {
  const [first, ...rest] = failures
  if (!(first instanceof CapfleetError) || rest.length === 0) return first
  const devices = failures.flatMap((failure) =>
    failure instanceof CapfleetError
      ? ((failure.details.members?.devices as string[] | undefined) ?? [])
      : [],
  )
  const messages = failures.flatMap((failure) => (failure instanceof CapfleetError ? failure.message : []))
  return new CapfleetError(first.code, messages.join('; '), {
    ...first.details,
    members: { ...first.details.members, devices: [...new Set(devices)] },
  })
}
