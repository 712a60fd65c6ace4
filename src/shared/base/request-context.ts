/**
 * The request that is being answered, for log lines and requests to devices: available to everything that is done for
 * it, however deep. What outlives requests, such as a connection to Redis, must be created outside of them.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { SpanSink } from './ended-span.ts'
import type { TraceContext } from './trace-context.ts'

export interface RequestContext {
  readonly requestId: string
  readonly trace: TraceContext
  /** Where its spans are sent; undefined: tracing is off. */
  readonly spans?: SpanSink | undefined
}

const CURRENT = new AsyncLocalStorage<RequestContext | undefined>()

/** Returns undefined if the running code does not belong to a request. */
export function currentRequest(): RequestContext | undefined {
  return CURRENT.getStore()
}

export function withinRequest<Result>(request: RequestContext, run: () => Result): Result {
  return CURRENT.run(request, run)
}

export function outsideOfRequests<Result>(run: () => Result): Result {
  return CURRENT.run(undefined, run)
}
