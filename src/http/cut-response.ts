import type { ServerResponse } from 'node:http'
import { CapfleetError } from '../base/error.ts'
import { resetConnection } from './reset-connection.ts'

export interface CutOptions {
  /** The bytes go out as they are: the caller has seen to chunks. */
  readonly isFramed?: boolean
  /** Why the body cannot be completed. */
  readonly reason?: unknown
  /** Called when nothing that was written is thrown away by us, before the client can see the end. */
  readonly onHanded?: () => void
}

/** How long a client gets to take what is already written before the connection goes. */
const DRAIN_LIMIT_MS = 30_000
/** Time for the last bytes to leave the kernel before a reset discards its buffer. */
const RESET_DELAY_MS = 1_000

/**
 * Ends a body that cannot be completed so that nobody can take it for a whole one: writes
 * `partialRecord` (bytes that leave the PCAP, gzip or zstd format inside an element), then breaks
 * the connection. HTTP/1.1 clients see a missing last chunk; an HTTP/1.0 client has only the reset.
 * When the program ends (`reason` is draining) it is a reset, too: a pod's network ends soon, and a slow client would
 * wait for ever for the end that is behind bytes in our kernel. Calling it after the response closed is harmless.
 */
export async function cutResponse(
  res: ServerResponse,
  partialRecord: Uint8Array,
  { isFramed = false, reason, onHanded }: CutOptions = {},
): Promise<void> {
  const socket = res.socket
  if (socket === null || res.closed || res.writableEnded) return
  const body = isFramed ? socket : res
  const isLast = isShutdown(reason)
  // The program that ends has no time for a client that takes nothing.
  const limit = setTimeout(
    () => (isLast ? resetConnection(socket) : socket.destroy()),
    isLast ? RESET_DELAY_MS : DRAIN_LIMIT_MS,
  )
  const gone = new Promise<false>((resolve) => res.once('close', () => resolve(false)))
  try {
    const written = new Promise<boolean>((resolve) => body.write(partialRecord, (error) => resolve(!error)))
    const isHanded = await Promise.race([written, gone])
    if ((res.req.httpVersionMinor === 0 || isLast) && !res.closed) {
      const reset = setTimeout(() => resetConnection(socket), RESET_DELAY_MS)
      await gone
      clearTimeout(reset)
      return
    }
    if (isHanded && !res.closed) onHanded?.()
    socket.destroy()
  } finally {
    clearTimeout(limit)
  }
}

function isShutdown(reason: unknown): boolean {
  return reason instanceof CapfleetError && reason.code === 'draining'
}
