import { spawnSync } from 'node:child_process'
import { constants } from 'node:os'
import { WAIT_LIMIT_MS } from '../test-limits.ts'

export interface MeasuredEnd {
  /** undefined if it ended by a signal. */
  readonly status: number | undefined
  readonly signal: string | undefined
  /** Its own CPU time: other programs on a busy machine do not count. */
  readonly cpuMs: number
}

/** Signals with which the limits of compile_limits.h end a program: CPU time and wall-clock time. */
export const LIMIT_SIGNALS: readonly string[] = ['SIGKILL', 'SIGXCPU', 'SIGALRM']

/** Runs a program to its end and returns how it ended and its CPU time. */
export function measureProcessorTime(program: string, input: string | Buffer): MeasuredEnd {
  const script = '"$0" > /dev/null 2>&1; ended=$?; times; exit $ended'
  const { status, stdout } = spawnSync('sh', ['-c', script, program], { input, timeout: WAIT_LIMIT_MS })
  if (status === null) throw new Error(`${program} did not end`)
  // The shell's own times are on the first line; each line has user and system time.
  const figures = /\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n$/.exec(stdout.toString())
  if (figures === null) throw new Error(`times said: ${stdout}`)
  const [userMin = 0, userS = 0, kernelMin = 0, kernelS = 0] = figures.slice(1).map(Number)
  const cpuMs = (userMin + kernelMin) * 60_000 + (userS + kernelS) * 1_000
  // Shells report signals like this.
  const signal = Object.entries(constants.signals).find(([, number]) => number === status - 128)?.[0]
  return { status: signal === undefined ? status : undefined, signal, cpuMs }
}

/** CPU time of this process so far: unlike a clock, it does not advance while other processes use the CPUs. */
export function ownProcessorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
