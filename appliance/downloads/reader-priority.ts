/**
 * Lowers the CPU and I/O priority below the recorder's: reading the store must never take resources from writing it.
 * Applies to this process with all its threads; later threads and programs inherit it.
 */
import { readdir } from 'node:fs/promises'
import { getPriority, setPriority } from 'node:os'
import { runTool } from '../machine/run-tool.ts'

/** A tenth of the share of a process with priority 0, if both want a whole CPU. */
const NICE = 10
/** ionice: best effort, the lowest of its eight levels. The idle class would starve downloads completely. */
const IO_CLASS = '2'
const IO_LEVEL = '7'
const TOOL_LIMIT_MS = 5_000
/** A thread may have been started by another one that had not been lowered yet. */
const ROUNDS_MAX = 5

/** Never fails: without the tools (util-linux) the lower CPU share remains. */
export async function lowerPriority(): Promise<void> {
  const done = new Set<string>()
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const threads = (await readdir('/proc/self/task')).filter((thread) => !done.has(thread))
    if (threads.length === 0) return
    await lowerThreads(threads)
    for (const thread of threads) done.add(thread)
  }
}

async function lowerThreads(threads: readonly string[]): Promise<void> {
  const signal = AbortSignal.timeout(TOOL_LIMIT_MS)
  for (const thread of threads) lowerThread(Number(thread))
  await runTool('ionice', { args: ['-c', IO_CLASS, '-n', IO_LEVEL, '-p', ...threads], signal })
  // SCHED_BATCH never preempts a running thread.
  await runTool('chrt', { args: ['--batch', '--all-tasks', '--pid', '0', String(process.pid)], signal })
}

/** The kernel accepts a thread id in place of a process id. */
function lowerThread(thread: number): void {
  try {
    setPriority(thread, Math.max(NICE, getPriority(thread)))
  } catch {
    // The thread has ended; lowering a priority is never refused.
  }
}
