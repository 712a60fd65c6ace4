import type { IncomingMessage } from 'node:http'
import { CapfleetError } from '../base/error.ts'

interface BodyContext {
  readonly req: IncomingMessage
}

export function hasBody({ req }: BodyContext): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers
  return length !== '0' || coding !== undefined
}

/** Rejects a request body at a path that only accepts parameters in the query string. Fails with bad-parameter. */
export function refuseBody(ctx: BodyContext): void {
  if (!hasBody(ctx)) return
  throw new CapfleetError(
    'bad-parameter',
    'the request has a body; pass parameters in the query string instead',
  )
}
