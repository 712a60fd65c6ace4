import type { ServerResponse } from 'node:http'

/** Who takes so much in a turn is not slow. */
const LEAST_BYTES = 1_048_576n

export interface SlowClientOptions {
  readonly res: Pick<ServerResponse, 'writableLength'>
  /** How long a turn is. */
  readonly turnMs: number
  /** Bytes of the body that were written so far, taken by the client or not. */
  readonly writtenBytes: () => bigint
  /** Whether others wait for what the answer holds. */
  readonly isWanted: () => boolean | Promise<boolean>
  /** Called once. */
  readonly onSlow: () => void
}

/**
 * Tells of a client that holds what others wait for and hardly reads: that took in a whole turn neither
 * 1 MiB nor all that was there for it when the turn began. So a client that keeps up with a body of which
 * little comes is never slow. Watches until dispose.
 */
export function watchSlowClient(options: SlowClientOptions): Disposable {
  const { res, turnMs, writtenBytes, isWanted, onSlow } = options
  let writtenBefore = 0n
  let takenBefore = 0n
  let hasEnded = false
  const turn = async (): Promise<void> => {
    const written = writtenBytes()
    const taken = written - BigInt(res.writableLength)
    const isSlow = taken - takenBefore < LEAST_BYTES && taken < writtenBefore
    writtenBefore = written
    takenBefore = taken
    if (!isSlow || !(await isWanted()) || hasEnded) return
    end()
    onSlow()
  }
  const timer = setInterval(() => void turn().catch(() => undefined), turnMs)
  const end = (): void => {
    hasEnded = true
    clearInterval(timer)
  }
  return { [Symbol.dispose]: end }
}
