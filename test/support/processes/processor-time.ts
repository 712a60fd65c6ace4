import { spawnSync } from 'node:child_process'
import { constants } from 'node:os'
import { WAIT_LIMIT_MS } from '../test-limits.ts'

export interface MeasuredEnd {
  /** undefined when a signal ended it. */
  readonly status: number | undefined
  readonly signal: string | undefined
  /** Of its own: other programs of a busy machine do not count. */
  readonly cpuMs: number
}

/** How the limits of compile_limits.h end a program: that of processor time, and that of the clock. */
export const LIMIT_SIGNALS: readonly string[] = ['SIGKILL', 'SIGXCPU', 'SIGALRM']

/** Runs a program to its end and tells how it ended and how long it computed. */
export function measureProcessorTime(program: string, input: string | Buffer): MeasuredEnd {
  const script = '"$0" > /dev/null 2>&1; ended=$?; times; exit $ended'
  const { status, stdout } = spawnSync('sh', ['-c', script, program], { input, timeout: WAIT_LIMIT_MS })
  if (status === null) throw new Error(`${program} did not end`)
  // The shell's own on the first line; each is of the program and of the kernel for it.
  const figures = /\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n$/.exec(stdout.toString())
  if (figures === null) throw new Error(`times said: ${stdout}`)
  const [userMin = 0, userS = 0, kernelMin = 0, kernelS = 0] = figures.slice(1).map(Number)
  const cpuMs = (userMin + kernelMin) * 60_000 + (userS + kernelS) * 1_000
  // So a shell tells of signals.
  const signal = Object.entries(constants.signals).find(([, number]) => number === status - 128)?.[0]
  return { status: signal === undefined ? status : undefined, signal, cpuMs }
}

/** Processor time of this process until now: unlike a clock, it does not run while others have the processors. */
export function ownProcessorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
