import { regexCompilerPath } from '../../native/addon.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { quote } from '../../src/shared/query/query-parameters.ts'
import type { CompileQueue, CompileRequest } from './compile-queue.ts'

/** The helper limits itself to this. */
const HELPER = { path: regexCompilerPath, cpuLimitMs: 1_000 }

/** Compiles FilterRE with Hyperscan, in a helper process with limits. */
export class RegexCompiler {
  readonly #queue: CompileQueue

  constructor(queue: CompileQueue) {
    this.#queue = queue
  }

  /**
   * The serialized database for a FilterRE of at most 1 KiB: a pattern in PCRE syntax, without back-references and
   * look-around, or one between slashes. Fails with bad-regex (Hyperscan's message, or that it is too complex or too
   * slow), otherwise like CompileQueue.compile.
   */
  async compile(filter: string, request: CompileRequest): Promise<Uint8Array> {
    const { pattern, begin } = readFilter(filter)
    const outcome = await this.#queue.compile({ helper: HELPER, input: Buffer.from(pattern) }, request)
    if ('output' in outcome) return outcome.output
    const index = positionIn(pattern, outcome.problem)
    const position = index === undefined ? undefined : Math.max(0, begin + index)
    const problem = outcome.problem.replace(BYTE_INDEX, ` at character ${position}`)
    throw new CapfleetError('bad-regex', `FilterRE ${quote(filter)} does not compile: ${problem}`, {
      param: 'FilterRE',
      position,
    })
  }
}

interface RegexFilter {
  readonly pattern: string
  /** Where the pattern begins in the filter, in characters; negative if flags have been put before the pattern. */
  readonly begin: number
}

/** Converts "/text/i" as used by other tools, between slashes and followed by flags, to "(?i)text". */
function readFilter(filter: string): RegexFilter {
  const end = filter.lastIndexOf('/')
  const letters = filter.slice(end + 1)
  if (!filter.startsWith('/') || end < 2 || !areFlags(letters)) return { pattern: filter, begin: 0 }
  const flags = letters === '' ? '' : `(?${letters})`
  return { pattern: `${flags}${filter.slice(1, end)}`, begin: 1 - flags.length }
}

/** Whether the letters are flags, none of them repeated. */
function areFlags(letters: string): boolean {
  return /^[ism]{0,3}$/.test(letters) && new Set(letters).size === letters.length
}

const BYTE_INDEX = / at index (\d+)/

/** Hyperscan counts bytes, but the caller sees characters. */
function positionIn(pattern: string, problem: string): number | undefined {
  const index = BYTE_INDEX.exec(problem)?.[1]
  if (index === undefined) return undefined
  return Buffer.from(pattern).subarray(0, Number(index)).toString().length
}
