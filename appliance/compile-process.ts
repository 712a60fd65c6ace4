import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { buffer, text } from 'node:stream/consumers'
import { LRUCache } from 'lru-cache'
import { CapfleetError } from '../src/base/error.ts'
import { FifoLimit } from './fifo-limit.ts'

const COMPILERS_AT_ONCE = 2
const WAITING_MAX = 64
const CACHED_OUTCOMES = 256
const CACHED_BYTES = 64 * 2 ** 20
/** A cached outcome's own weight, so that small ones count too. */
const OUTCOME_BYTES = 1024

export type CompileOutcome = { readonly output: Buffer } | { readonly problem: string }

export interface CompileHelper {
  /** The program's path. It reads stdin to its end; status 0: output, 1: one line on stderr. */
  readonly program: string
  /** Killed after this long. */
  readonly limitMs: number
}

/**
 * Runs a compile helper (native/engine/*_compile_main.cc) for texts that others wrote: each in a
 * process of its own that is killed when it takes too long, at most two at once. Outcomes, also
 * failures, are remembered.
 */
export class CompileProcess {
  readonly #helper: CompileHelper
  readonly #limit = new FifoLimit(COMPILERS_AT_ONCE)
  readonly #outcomes = new LRUCache<string, CompileOutcome>({
    max: CACHED_OUTCOMES,
    maxSize: CACHED_BYTES,
    sizeCalculation: (outcome) => OUTCOME_BYTES + ('output' in outcome ? outcome.output.byteLength : 0),
  })

  constructor(helper: CompileHelper) {
    this.#helper = helper
  }

  /**
   * What the helper makes of the input. Fails with download-slots-exhausted when too many wait
   * already, or with the signal's reason.
   */
  async run(input: Buffer, signal: AbortSignal): Promise<CompileOutcome> {
    const key = input.toString('latin1')
    const outcome = this.#outcomes.get(key) ?? (await this.#runNew(input, signal))
    this.#outcomes.set(key, outcome)
    return outcome
  }

  async #runNew(input: Buffer, signal: AbortSignal): Promise<CompileOutcome> {
    if (this.#limit.waiting >= WAITING_MAX) {
      throw new CapfleetError(
        'download-slots-exhausted',
        `${WAITING_MAX} filters wait to be compiled already; try again later`,
        { retryAfterS: Math.ceil(this.#helper.limitMs / 1000) },
      )
    }
    using _place = await this.#limit.acquire(signal)
    return await runHelper(this.#helper, input, signal)
  }
}

async function runHelper(helper: CompileHelper, input: Buffer, signal: AbortSignal): Promise<CompileOutcome> {
  signal.throwIfAborted()
  const child = spawn(helper.program, { stdio: ['pipe', 'pipe', 'pipe'], env: {} })
  const kill = (): void => void child.kill('SIGKILL')
  const limit = setTimeout(kill, helper.limitMs)
  signal.addEventListener('abort', kill, { once: true })
  try {
    const { status, output, message } = await resultOf(child, input)
    signal.throwIfAborted()
    if (status === 0) return { output }
    if (status === 1 && message !== '') return { problem: message }
    return {
      problem: `it is too complex: compiling took more than ${helper.limitMs / 1000} s or 256 MiB`,
    }
  } finally {
    clearTimeout(limit)
    signal.removeEventListener('abort', kill)
  }
}

interface ChildResult {
  /** null when a signal ended it. */
  readonly status: number | null
  readonly output: Buffer
  readonly message: string
}

async function resultOf(child: ChildProcess, input: Buffer): Promise<ChildResult> {
  const { stdin, stdout, stderr } = child
  if (stdin === null || stdout === null || stderr === null) throw new Error('the compiler has no pipes')
  // A compiler that ends before it has read everything says why by its status.
  stdin.on('error', () => undefined)
  stdin.end(input)
  const [[status], output, message] = await Promise.all([
    once(child, 'close') as Promise<[number | null]>,
    buffer(stdout),
    text(stderr),
  ])
  return { status, output, message: message.trim() }
}
