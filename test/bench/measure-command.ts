import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** One run of one side of a comparison. */
export interface Measure {
  readonly seconds: number
  /** Largest resident memory seen of the process that does the work. */
  readonly peakRssMiB: number
  /** Processor time of the process that does the work, where it is measured. */
  readonly cpuSeconds?: number
}

export interface MeasureOptions {
  /** Whose memory is looked at; default the command's own. */
  readonly pid?: number
}

const SAMPLE_MS = 10

/** Runs a command with its output thrown away and takes its time, start and end included. */
export async function measureCommand(
  command: string,
  args: readonly string[],
  options: MeasureOptions = {},
): Promise<Measure> {
  const startMs = performance.now()
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const rss = new RssPeak(options.pid ?? child.pid)
  try {
    await succeeded(child, `${command} ${args.join(' ')}`)
    return { seconds: (performance.now() - startMs) / 1000, peakRssMiB: rss.peakMiB }
  } finally {
    rss.stop()
  }
}

/** What a shell line prints. Both bash and pipefail: a failure anywhere in a pipe counts. */
export async function shellOutput(line: string): Promise<string> {
  const child = spawn('bash', ['-o', 'pipefail', '-c', line], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [output] = await Promise.all([readAll(child.stdout), succeeded(child, line)])
  return output
}

async function succeeded(child: ChildProcess, what: string): Promise<void> {
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const [problem, code] = await Promise.all([readAll(child.stderr), ended])
  if (code !== 0) throw new Error(`${what} ended with ${code}: ${problem.trim()}`)
}

async function readAll(stream: NodeJS.ReadableStream | null): Promise<string> {
  let text = ''
  for await (const chunk of stream ?? []) text += chunk.toString()
  return text
}

/** Looks at a process's resident memory until it is stopped. */
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
      // The process has just ended; its peak so far stands.
    }
  }
}
