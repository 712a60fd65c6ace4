import type { ServerResponse } from 'node:http'

/** A client that reads this much in a period is not slow. */
const LEAST_BYTES = 1_048_576n

export interface SlowClientOptions {
  readonly res: Pick<ServerResponse, 'writableLength'>
  /** Length of a period. */
  readonly turnMs: number
  /** Bytes of the body written so far, read by the client or not. */
  readonly writtenBytes: () => bigint
  /** Whether others are waiting for what the answer occupies. */
  readonly isWanted: () => boolean | Promise<boolean>
  /** Called once. */
  readonly onSlow: () => void
}

/**
 * Detects a client that reads slowly while others wait for what it occupies: one that in a whole period read neither
 * 1 MiB nor everything that was available at the start of the period. A client that keeps up with a body that arrives
 * slowly is therefore never treated as slow. Watches until disposed.
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
