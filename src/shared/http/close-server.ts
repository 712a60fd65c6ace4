/** Shuts a server down without losing answers that are still being delivered. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, Server as ListeningServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { ConnectionLimits } from './connection-limits.ts'
import { lastBytesDelivered } from './last-bytes.ts'
import type { RunningAnswers } from './running-answers.ts'

/** A request that is in transit when the server begins to close has this long to arrive, and is then answered. */
const LINGER_MS = 250

/** The open connections and answers of a server. */
export interface OpenParts {
  readonly answers: RunningAnswers
  readonly limits: ConnectionLimits
}

/**
 * Accepts no new connections, lets running answers end and their clients read them for `drainMs`, then resets the
 * rest. Node's own close() also ends connections whose answers have ended while their bytes are still waiting in the
 * process; so this only closes the listener, and each connection once no answer is in progress on it. REQUIRES: the
 * answers are draining.
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
  // Clients that have received the end may keep their side open as long as they like; nothing waits for them.
  const left = await lastBytesDelivered(port, deadlineMs - performance.now())
  if (left === 0) limits.closeAll()
  else limits.resetAll()
  await closed
  clearTimeout(cut)
  // Ends the timer with which it checks its connections.
  server.close()
}
