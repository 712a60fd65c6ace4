import type { IncomingMessage } from 'node:http'
import type { RequestState } from '../../src/shared/http/http-app.ts'
import { badParameter, quote } from '../../src/shared/query/query-parameters.ts'

/** The caller. Resources that callers compete for are shared by this. */
export interface LabelledCaller {
  /** The user whose credentials came with the request, or "" if there were none. */
  readonly user: string
  /**
   * The same for all requests of one caller. A gateway makes requests for many callers with one user's credentials and
   * distinguishes them by a label; a user who invents labels gets no more than the share of one user.
   */
  readonly id: string
}

/** Whether a gateway says that its caller must not learn anything about packets that the filter hides. */
export function hasForcedFilter({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['capfleet-forced-filter'] === 'true'
}

/** Visible ASCII: a gateway sends a hash, so that no device learns the names of its users. */
const LABEL = /^[!-~]{1,64}$/

/** From the credentials and Capfleet-Caller. Fails with bad-parameter if that header is not a valid label. */
export function callerOf({
  state,
  headers,
}: Pick<IncomingMessage, 'headers'> & { state: RequestState }): LabelledCaller {
  const user = state.caller?.name ?? ''
  const label = headers['capfleet-caller']
  if (label === undefined) return { user, id: `${user}\n` }
  if (typeof label === 'string' && LABEL.test(label)) return { user, id: `${user}\n${label}` }
  throw badParameter(
    'Capfleet-Caller',
    `must be a label of 1 to 64 visible ASCII characters, got ${quote(String(label))}`,
  )
}
