/** The life of a long-running program: signals, the parent's end, a clean exit status. */
import v8 from 'node:v8'
import { CapfleetError } from './error.ts'

/** One Ctrl-C under npm arrives twice: from the terminal, and passed on by npm. */
const SAME_SIGNAL_MS = 1_000
/** As a shell reports an interrupted command. */
const EXIT_FORCED = 130

/**
 * What lives on while a program starts, V8 would from then on allocate among the old objects. Those of
 * requests that have ended would lie there until the next full collection and keep alive whatever they
 * refer to: 18 % of what control calls allocate survived every collection of young objects, not 1 %.
 */
const V8_FLAGS = '--no-allocation-site-pretenuring'

/**
 * Runs `main` until it returns. SIGINT, SIGTERM and the end of a parent that holds an IPC channel
 * abort `signal`; who asks again a second later ends the process at once. An error is printed as
 * one line.
 */
export async function runProgram(main: (signal: AbortSignal) => Promise<void>): Promise<void> {
  v8.setFlagsFromString(V8_FLAGS)
  const stop = new AbortController()
  let stoppedMs: number | undefined
  const onSignal = (): void => {
    const nowMs = performance.now()
    stoppedMs ??= nowMs
    if (nowMs - stoppedMs > SAME_SIGNAL_MS) process.exit(EXIT_FORCED)
    stop.abort()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  if (process.connected) process.on('disconnect', () => stop.abort())
  try {
    await main(stop.signal)
    process.exitCode = 0
  } catch (error) {
    process.stderr.write(`capfleet: ${describeError(error)}\n`)
    process.exitCode = 1
  } finally {
    if (process.connected) process.disconnect()
  }
}

/** One line for the user; a stack only for what is a defect. */
export function describeError(error: unknown): string {
  if (error instanceof CapfleetError) return `${error.message} [${error.code}]`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
