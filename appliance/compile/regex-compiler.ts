import { regexCompilerPath } from '../../native/addon.ts'
import { CapfleetError } from '../../src/base/error.ts'
import type { CompileQueue, CompileRequest } from './compile-queue.ts'

/** The helper allows itself so much. */
const HELPER = { path: regexCompilerPath, cpuLimitMs: 1_000 }

/** Compiles FilterRE with Hyperscan, in a helper process with limits. */
export class RegexCompiler {
  readonly #queue: CompileQueue

  constructor(queue: CompileQueue) {
    this.#queue = queue
  }

  /**
   * The serialized database for a pattern in PCRE's syntax, without back-references and look-around,
   * at most 1 KiB. Fails with bad-regex (Hyperscan's message, or that it is too complex or too slow),
   * otherwise as CompileQueue.compile does.
   */
  async compile(pattern: string, request: CompileRequest): Promise<Uint8Array> {
    const outcome = await this.#queue.compile({ helper: HELPER, input: Buffer.from(pattern) }, request)
    if ('output' in outcome) return outcome.output
    throw new CapfleetError('bad-regex', `FilterRE does not compile: ${outcome.problem}`, {
      param: 'FilterRE',
      position: positionIn(pattern, outcome.problem),
    })
  }
}

/** Hyperscan counts bytes; the caller sees characters. */
function positionIn(pattern: string, problem: string): number | undefined {
  const index = / at index (\d+)/.exec(problem)?.[1]
  if (index === undefined) return undefined
  return Buffer.from(pattern).subarray(0, Number(index)).toString().length
}
