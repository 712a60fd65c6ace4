/** Processor time and memory of programs including all their children, as the kernel counts them. */
import { readdirSync, readFileSync } from 'node:fs'

/** The value of sysconf(_SC_CLK_TCK) on every supported Linux. */
const TICKS_PER_SECOND = 100
const SAMPLE_MS = 50

/** Seconds since they began, including children that have ended. */
export function cpuSecondsOf(pids: readonly number[]): number {
  let ticks = 0
  for (const pid of pids.flatMap(withDescendants)) {
    // The name of the program, in parentheses, may contain spaces.
    const fields = read(`/proc/${pid}/stat`)
      .replace(/^.*\) /s, '')
      .split(' ')
    // utime, stime, and those of children that were waited for.
    for (const field of fields.slice(11, 15)) ticks += Number(field)
  }
  return ticks / TICKS_PER_SECOND
}

/** Seconds that this machine's processors have worked since boot, for all processes. */
export function machineSeconds(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = read('/proc/stat')
    .split('\n', 1)
    .flatMap((line) => line.split(/ +/).slice(1).map(Number))
  return (user + nice + system + irq + softIrq + steal) / TICKS_PER_SECOND
}

/** Resident memory, including children. */
export function residentMibOf(pid: number): number {
  const kib = Number(/^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0)
  const program = read(`/proc/${pid}/cmdline`)
  // Until a child has executed its own program, it still shows its parent's memory.
  const others = childrenOf(pid).filter((child) => read(`/proc/${child}/cmdline`) !== program)
  return others.reduce((sum, child) => sum + residentMibOf(child), kib / 1024)
}

export function isAlive(pid: number): boolean {
  const status = read(`/proc/${pid}/stat`)
  return status !== '' && !/^\d+ \(.*\) Z/s.test(status)
}

/** The largest memory seen between start and stop. */
export class MemoryPeak {
  readonly #pid: number
  readonly #timer: NodeJS.Timeout
  #peakMib = 0

  constructor(pid: number) {
    this.#pid = pid
    this.#timer = setInterval(() => this.#look(), SAMPLE_MS)
    this.#look()
  }

  stop(): number {
    clearInterval(this.#timer)
    this.#look()
    return this.#peakMib
  }

  #look(): void {
    this.#peakMib = Math.max(this.#peakMib, residentMibOf(this.#pid))
  }
}

function withDescendants(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(withDescendants)]
}

function childrenOf(pid: number): number[] {
  return threadsOf(pid).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  )
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** Empty if the process has just ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
