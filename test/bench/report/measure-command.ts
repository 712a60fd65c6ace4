import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** One run of one side of a comparison. */
export interface Measure {
  readonly seconds: number
  /** Largest resident memory seen of the server that does the work; 0 = not measured. */
  readonly peakRssMiB: number
  /** Processor time of the process that does the work, if it is measured. */
  readonly cpuSeconds?: number
}

export interface MeasureOptions {
  /** The server whose memory is measured. */
  readonly pid?: number
}

const SAMPLE_MS = 10
/** Printed by the shell: it counts the command and all processes that it starts. */
const TIMED = 'TIMEFORMAT=\'%3U %3S\'; time "$@"'

/** Runs a command with its output discarded, and measures its time and processor time, including start and end. */
export async function measureCommand(
  command: string,
  args: readonly string[],
  options: MeasureOptions = {},
): Promise<Measure> {
  const startMs = performance.now()
  const child = spawn('bash', ['-c', TIMED, 'bash', command, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const rss = options.pid === undefined ? undefined : new RssPeak(options.pid)
  try {
    const told = await succeeded(child, `${command} ${args.join(' ')}`)
    const seconds = (performance.now() - startMs) / 1000
    const [user = Number.NaN, system = Number.NaN] = (told.trim().split('\n').at(-1) ?? '')
      .split(' ')
      .map(Number)
    return { seconds, peakRssMiB: rss?.peakMiB ?? 0, cpuSeconds: user + system }
  } finally {
    rss?.stop()
  }
}

/** The output of a shell line. Uses bash with pipefail: a failure anywhere in a pipe counts. */
export async function shellOutput(line: string): Promise<string> {
  const child = spawn('bash', ['-o', 'pipefail', '-c', line], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [output] = await Promise.all([readAll(child.stdout), succeeded(child, line)])
  return output
}

/** Resolves with its output on stderr. */
async function succeeded(child: ChildProcess, what: string): Promise<string> {
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const [problem, code] = await Promise.all([readAll(child.stderr), ended])
  if (code !== 0) throw new Error(`${what} ended with ${code}: ${problem.trim()}`)
  return problem
}

async function readAll(stream: NodeJS.ReadableStream | null): Promise<string> {
  let text = ''
  for await (const chunk of stream ?? []) text += chunk.toString()
  return text
}

/** Samples a process's resident memory until it is stopped. */
class RssPeak {
  peakMiB = 0
  readonly #timer: NodeJS.Timeout

  constructor(pid: number | undefined) {
    this.#timer = setInterval(() => this.#look(pid), SAMPLE_MS)
    this.#look(pid)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(pid: number | undefined): void {
    try {
      const match = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
      this.peakMiB = Math.max(this.peakMiB, Number(match?.[1] ?? 0) / 1024)
    } catch {
      // The process has just ended; the peak so far is the result.
    }
  }
}
