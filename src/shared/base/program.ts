/** The life of a long-running program: signals, the parent's end, a clean exit status. */
import { addAbortListener } from 'node:events'
import { CapfleetError } from './error.ts'
import { pulseThreadPool } from './thread-pool-pulse.ts'

/** Under npm a single Ctrl-C arrives twice: from the terminal, and forwarded by npm. */
const SAME_SIGNAL_MS = 1_000
/** The status a shell reports for an interrupted command. */
const STATUS_INTERRUPTED = 130

export interface ProgramEnd {
  /** The line to print for an error; undefined: none. */
  readonly describe?: (error: unknown) => string | undefined
  /** The exit status for an error. Default: 1. */
  readonly statusOf?: (error: unknown) => number
  /** Whether it continues if nothing reads its stdout, or what it writes there is lost. */
  readonly outlivesOutput?: boolean
}

/**
 * Runs `main` until it returns. SIGINT, SIGTERM and the end of a parent that holds an IPC channel abort `signal`; a
 * second request at least one second later ends the process at once. An error is printed as one line, unless `main`
 * failed because of the signal, which gives the exit status of an interrupted command.
 */
export async function runProgram(
  main: (signal: AbortSignal) => Promise<void>,
  { describe = describeError, statusOf = () => 1, outlivesOutput = false }: ProgramEnd = {},
): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (outlivesOutput) return
    // The program that reads our output, such as head, has closed the pipe.
    if (error.code !== 'EPIPE') process.stderr.write(`capfleet: standard output: ${error.message}\n`)
    process.exit(statusOf(error))
  })
  using _pulse = pulseThreadPool()
  const stop = new AbortController()
  let stoppedMs: number | undefined
  const onSignal = (): void => {
    const nowMs = performance.now()
    stoppedMs ??= nowMs
    if (nowMs - stoppedMs > SAME_SIGNAL_MS) process.exit(STATUS_INTERRUPTED)
    stop.abort()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  if (process.connected) process.on('disconnect', () => stop.abort())
  try {
    await main(stop.signal)
    process.exitCode = 0
  } catch (error) {
    // If a program was told to stop, it exits without an error message.
    const isStopped = stop.signal.aborted && error === stop.signal.reason
    const line = isStopped ? undefined : describe(error)
    if (line !== undefined) process.stderr.write(`capfleet: ${line}\n`)
    process.exitCode = isStopped ? STATUS_INTERRUPTED : statusOf(error)
  } finally {
    if (process.connected) process.disconnect()
  }
}

/** One line for the user; a stack only for bugs. */
export function describeError(error: unknown): string {
  if (error instanceof CapfleetError) return `${error.message} [${error.code}]`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => addAbortListener(signal, () => resolve()))
}
