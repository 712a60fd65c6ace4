import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError } from '../base/error.ts'
import { confirmedByClient } from './last-bytes.ts'
import { resetConnection, tcpSocketOf } from './reset-connection.ts'

export interface CutOptions {
  /** Whether the bytes are written unchanged: the caller has framed them as chunks. */
  readonly isFramed?: boolean
  /** Why the body cannot be completed. */
  readonly reason?: unknown
  /**
   * Called when the client has acknowledged everything that was written, before it can see the end. Not for HTTP/1.0,
   * which usually means a proxy, whose client may never get what the proxy holds.
   */
  readonly onHanded?: () => void
}

/** How long a client gets to read what is already written before the connection is closed. */
const DRAIN_LIMIT_MS = 30_000
/** The same when the program ends, which has no time for a client that reads nothing. */
const SHUTDOWN_LIMIT_MS = 1_000
/** Time for a client to read what its kernel has acknowledged: some kernels discard that on a reset. */
const READ_MS = 200

/**
 * Ends a body that cannot be completed so that no client takes it for a complete one: writes `partialRecord` (bytes
 * that leave the PCAP, gzip or zstd format inside an element), and resets the connection once the client has them.
 * Without a reset GNU wget takes a chunk that breaks off for the end of the body, and an HTTP/1.0 client any end of
 * the connection. Harmless after the response has closed.
 */
export async function cutResponse(
  res: ServerResponse,
  partialRecord: Uint8Array,
  { isFramed = false, reason, onHanded }: CutOptions = {},
): Promise<void> {
  const socket = res.socket
  if (socket === null || res.closed || res.writableEnded) return
  const body = isFramed ? socket : res
  const limit = setTimeout(
    () => resetConnection(socket),
    isShutdown(reason) ? SHUTDOWN_LIMIT_MS : DRAIN_LIMIT_MS,
  )
  const gone = once(res, 'close').then(() => false)
  try {
    const written = new Promise<boolean>((resolve) => body.write(partialRecord, (error) => resolve(!error)))
    if (!(await Promise.race([written, gone]))) return
    if (!(await confirmedByClient(tcpSocketOf(socket)))) return
    if (res.req.httpVersionMinor > 0) onHanded?.()
    await Promise.race([delay(READ_MS), gone])
  } finally {
    clearTimeout(limit)
    resetConnection(socket)
  }
}

function isShutdown(reason: unknown): boolean {
  return reason instanceof CapfleetError && reason.code === 'draining'
}
