import { bpfCompilerPath } from '../../native/addon.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { MAX_CAPTURED_LENGTH } from '../../src/shared/pcap/pcap-sizes.ts'
import { filterAdvice } from '../../src/shared/query/filter/filter-advice.ts'
import { quote } from '../../src/shared/query/query-parameters.ts'
import type { CompileQueue, CompileRequest } from './compile-queue.ts'

/** libpcap takes seconds for some texts (800 ORed hosts). The helper limits itself to this. */
const HELPER = { path: bpfCompilerPath, cpuLimitMs: 2_000 }

export interface FilterText {
  /** tcpdump's syntax, at most 16 KiB. */
  readonly expression: string
  /** Link type word of the packets that it will be applied to. */
  readonly linkType: number
}

/** Compiles FilterBPF with libpcap, in a helper process with limits. */
export class FilterCompiler {
  readonly #queue: CompileQueue

  constructor(queue: CompileQueue) {
    this.#queue = queue
  }

  /**
   * The cBPF program. Fails with bad-bpf (libpcap's message, or that it is too complex), otherwise like
   * CompileQueue.compile.
   */
  async compile(filter: FilterText, request: CompileRequest): Promise<Uint8Array> {
    const outcome = await this.#queue
      .compile({ helper: HELPER, input: inputOf(filter) }, request)
      .catch((error: unknown) => {
        throw withBusyAdvice(error, filter)
      })
    if ('problem' in outcome) throw badFilter(filter, withAdvice(outcome.problem, filter))
    if (jumpsBackwards(outcome.output)) {
      throw badFilter(filter, 'protochain is not supported because it loops; name the header instead')
    }
    return outcome.output
  }
}

/** Long lists of hosts are what most filters are that exceed the limits. */
function withAdvice(problem: string, { expression }: FilterText): string {
  if (problem.includes('too complex')) return `${problem}; FilterAddresses takes lists of addresses`
  const advice = filterAdvice(expression)
  return advice === undefined ? problem : `${problem}; ${advice}`
}

/** A list of this length takes libpcap seconds where others wait for a processor. */
const LONG_EXPRESSION = 4_096

function withBusyAdvice(error: unknown, { expression }: FilterText): unknown {
  if (!(error instanceof CapfleetError) || error.code !== 'compiler-busy') return error
  if (expression.length < LONG_EXPRESSION) return error
  const message = `${error.message}; FilterAddresses takes lists of addresses without compiling them`
  return new CapfleetError(error.code, message, error.details)
}

function badFilter({ expression }: FilterText, problem: string): CapfleetError {
  const message = `FilterBPF ${quote(expression)} does not compile: ${problem}`
  return new CapfleetError('bad-bpf', message, { param: 'FilterBPF' })
}

const INSTRUCTION_BYTES = 8
const JUMP_ALWAYS = 0x05

/** Only `protochain` generates a backward jump, a loop that a packet could keep running. */
function jumpsBackwards(program: Buffer): boolean {
  for (let offset = 0; offset + INSTRUCTION_BYTES <= program.length; offset += INSTRUCTION_BYTES) {
    if (program.readUInt16LE(offset) === JUMP_ALWAYS && program.readInt32LE(offset + 4) < 0) return true
  }
  return false
}

/** Link type word and snaplen, 4 bytes each, little-endian, then the text. */
function inputOf({ linkType, expression }: FilterText): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32LE(linkType, 0)
  head.writeUInt32LE(MAX_CAPTURED_LENGTH, 4)
  return Buffer.concat([head, Buffer.from(expression)])
}
