/**
 * Limits how long a client may take to send the body of a request. Node's own limit applies to all requests of a
 * server, but an upload may take hours.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { hasBody } from './request-body.ts'

/** From the end of the head to the end of the body. */
const BODY_TIMEOUT_MS = 30_000

const LATE_ANSWER = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n'

/** Requests whose bodies may take any time. */
const LONG = new WeakSet<IncomingMessage>()

/** Closes the connection if the body has not arrived in time; the client gets 408 if it has no answer yet. */
export function limitBodyTime(req: IncomingMessage, res: ServerResponse): void {
  if (!hasBody({ req })) return
  const limit = setInterval(() => {
    const { complete, socket } = req
    if (LONG.has(req) && !complete) return
    clearInterval(limit)
    if (complete || socket.destroyed) return
    if (!res.headersSent) socket.write(LATE_ANSWER)
    socket.destroy()
  }, BODY_TIMEOUT_MS).unref()
  req.once('close', () => clearInterval(limit))
}

/** Suspends the limit until disposed: what nothing reads any more is limited again. */
export function allowLongBody(req: IncomingMessage): Disposable {
  LONG.add(req)
  return { [Symbol.dispose]: () => void LONG.delete(req) }
}
