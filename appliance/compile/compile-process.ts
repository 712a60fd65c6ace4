import { type ChildProcess, spawn } from 'node:child_process'
import { addAbortListener, once } from 'node:events'
import type { Readable } from 'node:stream'
import { CapfleetError } from '../../src/shared/base/error.ts'

/** A compile helper's verdict on its input, which is always the same for the same input. */
export type CompileOutcome = { readonly output: Buffer } | { readonly problem: string }

/** A program of native/engine/filter/*_compile_main.cc: it reads stdin to its end; status 0: output, 1: one line on stderr. */
export interface CompileHelper {
  readonly path: string
  /** The CPU time limit that it sets for itself; the kernel kills it then. */
  readonly cpuLimitMs: number
}

export interface HelperLimits {
  /** The time limit in wall-clock time, which continues while a busy machine makes the helper wait. */
  readonly limitMs: number
  readonly signal: AbortSignal
}

/**
 * More than any helper prints: a Hyperscan database has at most 8 MiB (regex_compile_main.cc), a message is one line.
 * The text may have compromised the helper, which must then not fill this process's memory.
 */
const OUTPUT_BYTES_MAX = 9 * 2 ** 20
const MESSAGE_BYTES_MAX = 64 * 2 ** 10

/**
 * Runs a compile helper for untrusted text, in a process of its own. Fails with compiler-busy if something other than
 * the helper's own limits ended it, or with the signal's reason; neither says anything about the text. Fails with
 * internal-error if the helper writes more than allowed.
 */
export async function runHelper(
  helper: CompileHelper,
  input: Buffer,
  { limitMs, signal }: HelperLimits,
): Promise<CompileOutcome> {
  signal.throwIfAborted()
  const startedMs = performance.now()
  const child = spawn(helper.path, { stdio: ['pipe', 'pipe', 'pipe'], env: {} })
  let isLate = false
  const kill = (): void => void child.kill('SIGKILL')
  const limit = setTimeout(() => {
    isLate = true
    kill()
  }, limitMs)
  using _leave = addAbortListener(signal, kill)
  try {
    const { status, killedBy, output, message } = await resultOf(child, input)
    signal.throwIfAborted()
    if (status === 0) return { output }
    if (status === 1 && message !== '') return { problem: message }
    const ranMs = performance.now() - startedMs
    if (isLate || !isOwnEnd(killedBy, { ranMs, cpuLimitMs: helper.cpuLimitMs })) throw endedByOthers(ranMs)
    return { problem: `it is too complex: compiling took more than ${helper.cpuLimitMs / 1000} s or 256 MiB` }
  } finally {
    kill()
    clearTimeout(limit)
  }
}

/** How a helper ends that has run out of memory or stack. */
const OWN_SIGNALS: ReadonlySet<NodeJS.Signals | null> = new Set([
  null,
  'SIGABRT',
  'SIGBUS',
  'SIGSEGV',
  'SIGXCPU',
])

/** The kernel sends SIGKILL to a process that has used up its CPU time; before that, someone else sent it. */
function isOwnEnd(
  killedBy: NodeJS.Signals | null,
  { ranMs, cpuLimitMs }: { readonly ranMs: number; readonly cpuLimitMs: number },
): boolean {
  return OWN_SIGNALS.has(killedBy) || (killedBy === 'SIGKILL' && ranMs >= cpuLimitMs)
}

function endedByOthers(ranMs: number): CapfleetError {
  return new CapfleetError(
    'compiler-busy',
    `the device was too busy to compile the filter, and stopped after ${(ranMs / 1000).toFixed(1)} s; try again`,
    { retryAfterS: Math.ceil(ranMs / 1000) },
  )
}

interface ChildResult {
  /** null if a signal ended it. */
  readonly status: number | null
  readonly killedBy: NodeJS.Signals | null
  readonly output: Buffer
  readonly message: string
}

async function resultOf(child: ChildProcess, input: Buffer): Promise<ChildResult> {
  const { stdin, stdout, stderr } = child
  if (stdin === null || stdout === null || stderr === null) throw new Error('the compiler has no pipes')
  // A compiler that ends before it has read everything gives the reason in its status.
  stdin.on('error', () => undefined)
  stdin.end(input)
  const [[status, killedBy], output, message] = await Promise.all([
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
    readAtMost(OUTPUT_BYTES_MAX, stdout),
    readAtMost(MESSAGE_BYTES_MAX, stderr),
  ])
  return { status, killedBy, output, message: message.toString().trim() }
}

async function readAtMost(bytesMax: number, stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength
    if (bytes > bytesMax) {
      throw new CapfleetError('internal-error', `a compile helper wrote more than ${bytesMax} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
