import { bpfCompilerPath } from '../native/addon.ts'
import { CapfleetError } from '../src/base/error.ts'
import { CompileProcess } from './compile-process.ts'

/** libpcap takes seconds for some short texts (300 ORed hosts: 3.9 s); nobody else may wait for them. */
const COMPILE_LIMIT_MS = 2_000
/** The largest packet there is; a match keeps all of it. */
const SNAPLEN = 262_144

export interface FilterRequest {
  /** tcpdump's syntax, at most 16 KiB. */
  readonly expression: string
  /** Link type word of the packets that it will see. */
  readonly linkType: number
}

/** Compiles FilterBPF with libpcap, in a helper process with limits. */
export class FilterCompiler {
  readonly #process = new CompileProcess({ program: bpfCompilerPath, limitMs: COMPILE_LIMIT_MS })

  /**
   * The cBPF program. Fails with bad-bpf (libpcap's message, or that it is too complex), with
   * download-slots-exhausted when too many wait already, or with the signal's reason.
   */
  async compile(request: FilterRequest, signal: AbortSignal): Promise<Uint8Array> {
    const outcome = await this.#process.run(inputOf(request), signal)
    if ('problem' in outcome) throw badFilter(outcome.problem)
    if (jumpsBackwards(outcome.output)) {
      throw badFilter('protochain is not supported, because it loops; name the header to look at instead')
    }
    return outcome.output
  }
}

function badFilter(problem: string): CapfleetError {
  return new CapfleetError('bad-bpf', `FilterBPF does not compile: ${problem}`, { param: 'FilterBPF' })
}

const INSTRUCTION_BYTES = 8
const JUMP_ALWAYS = 0x05

/** Only `protochain` makes a jump backwards, a loop that a packet could keep running. */
function jumpsBackwards(program: Buffer): boolean {
  for (let offset = 0; offset + INSTRUCTION_BYTES <= program.length; offset += INSTRUCTION_BYTES) {
    if (program.readUInt16LE(offset) === JUMP_ALWAYS && program.readInt32LE(offset + 4) < 0) return true
  }
  return false
}

/** Link type word and snaplen, 4 bytes each, little-endian, then the text. */
function inputOf({ linkType, expression }: FilterRequest): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32LE(linkType, 0)
  head.writeUInt32LE(SNAPLEN, 4)
  return Buffer.concat([head, Buffer.from(expression)])
}
