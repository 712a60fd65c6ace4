import type { IncomingMessage, ServerResponse } from 'node:http'
import { CapfleetError } from '../base/error.ts'

interface BodyContext {
  readonly req: IncomingMessage
}

export function hasBody({ req }: BodyContext): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers
  return length !== '0' || coding !== undefined
}

/**
 * Asks a client that sends "Expect: 100-continue" for its body. Must be called before a body is read, after everything
 * that can be checked without it: the client of a rejected request then sends none.
 */
export function askForBody({ req, res }: BodyContext & { readonly res: ServerResponse }): void {
  if (req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue()
}

/** Rejects a request body at a path that only accepts parameters in the query string. Fails with bad-parameter. */
export function refuseBody(ctx: BodyContext): void {
  if (!hasBody(ctx)) return
  throw new CapfleetError(
    'bad-parameter',
    'the request has a body; pass parameters in the query string instead',
  )
}
