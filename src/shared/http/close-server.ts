/** The end of a server, at which no client loses what it is owed. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, Server as ListeningServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { ConnectionLimits } from './connection-limits.ts'
import { lastBytesDelivered } from './last-bytes.ts'
import type { RunningAnswers } from './running-answers.ts'

/** A request that is on its way when the server begins to close has so long to arrive; it is answered then. */
const LINGER_MS = 250

/** What a server has open. */
export interface OpenParts {
  readonly answers: RunningAnswers
  readonly limits: ConnectionLimits
}

/**
 * Takes no new connection, lets running answers end and their clients take them for `drainMs`, then resets the rest.
 * Node's own close() also ends the connections whose answers have ended while their bytes wait in the process; so
 * here only the listener is closed, and connections go when no answer is under way on them. REQUIRES: the answers drain.
 */
export async function closeServer(
  server: Server,
  { answers, limits }: OpenParts,
  drainMs: number,
): Promise<void> {
  const deadlineMs = performance.now() + drainMs
  const { port } = server.address() as AddressInfo
  const closed = once(server, 'close')
  ListeningServer.prototype.close.call(server)
  const lingered = delay(Math.min(LINGER_MS, drainMs), undefined, { ref: false }).then(() =>
    limits.closeAllBut(answers.lastSockets),
  )
  const cut = setTimeout(() => limits.resetAll(), drainMs)
  await Promise.race([closed, Promise.all([lingered, answers.idle()])])
  // Clients whose end has arrived may keep their side open for as long as they like: nobody waits for them.
  const left = await lastBytesDelivered(port, deadlineMs - performance.now())
  if (left === 0) limits.closeAll()
  else limits.resetAll()
  await closed
  clearTimeout(cut)
  // Ends the timer by which it looks at its connections.
  server.close()
}
