/**
 * Below the recorder, in CPU and I/O: what reads the store may never take from what writes it. For
 * this process with all its threads; later threads and programs inherit it.
 */
import { readdir } from 'node:fs/promises'
import { getPriority, setPriority } from 'node:os'
import { runTool } from '../machine/run-tool.ts'

/** A tenth of the share of a process with the priority 0, when both want all of a processor. */
const NICE = 10
/** ionice: best effort, the last of its eight levels. Idle would starve downloads for good. */
const IO_CLASS = '2'
const IO_LEVEL = '7'
const TOOL_LIMIT_MS = 5_000
/** A thread that another starts meanwhile may have come into being before its parent's turn. */
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
  // SCHED_BATCH never takes the processor from whoever runs.
  await runTool('chrt', { args: ['--batch', '--all-tasks', '--pid', '0', String(process.pid)], signal })
}

/** The kernel takes a thread's id where it takes that of a process. */
function lowerThread(thread: number): void {
  try {
    setPriority(thread, Math.max(NICE, getPriority(thread)))
  } catch {
    // It has ended: lowering is never refused.
  }
}
