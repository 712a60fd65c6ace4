import { regexCompilerPath } from '../native/addon.ts'
import { CapfleetError } from '../src/base/error.ts'
import { CompileProcess } from './compile-process.ts'

const COMPILE_LIMIT_MS = 1_000

/** Compiles FilterRE with Hyperscan, in a helper process with limits. */
export class RegexCompiler {
  readonly #process = new CompileProcess({ program: regexCompilerPath, limitMs: COMPILE_LIMIT_MS })

  /**
   * The serialized database for a pattern in PCRE's syntax, without back-references and look-around,
   * at most 1 KiB. Fails with bad-regex (Hyperscan's message, or that it is too complex or too slow),
   * with download-slots-exhausted when too many wait already, or with the signal's reason.
   */
  async compile(pattern: string, signal: AbortSignal): Promise<Uint8Array> {
    const outcome = await this.#process.run(Buffer.from(pattern), signal)
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
