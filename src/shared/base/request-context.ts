/**
 * The request that is being answered, for log lines and for questions to devices: whatever is done for it, however deep,
 * finds it here. What outlives requests, such as a connection to Redis, is made outside of them.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { SpanSink } from './ended-span.ts'
import type { TraceContext } from './trace-context.ts'

export interface RequestContext {
  readonly requestId: string
  readonly trace: TraceContext
  /** Where its spans go; undefined: none are kept. */
  readonly spans?: SpanSink | undefined
}

const CURRENT = new AsyncLocalStorage<RequestContext | undefined>()

/** undefined: what runs now is done for no request. */
export function currentRequest(): RequestContext | undefined {
  return CURRENT.getStore()
}

export function withinRequest<Result>(request: RequestContext, run: () => Result): Result {
  return CURRENT.run(request, run)
}

export function outsideOfRequests<Result>(run: () => Result): Result {
  return CURRENT.run(undefined, run)
}
