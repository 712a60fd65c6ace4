import type { IncomingMessage } from 'node:http'
import { CapfleetError } from '../base/error.ts'

/** Rejects a request body at a path that only accepts parameters in the query string. Fails with bad-parameter. */
export function refuseBody({ req }: { readonly req: IncomingMessage }): void {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers
  if (length === '0' && coding === undefined) return
  throw new CapfleetError(
    'bad-parameter',
    'the request has a body; pass parameters in the query string instead',
  )
}
