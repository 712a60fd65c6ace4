import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { buffer, text } from 'node:stream/consumers'
import { LRUCache } from 'lru-cache'
import { bpfCompilerPath } from '../native/addon.ts'
import { CapfleetError } from '../src/base/error.ts'
import { FifoLimit } from './fifo-limit.ts'

/** libpcap takes seconds for some short texts (300 ORed hosts: 3.9 s); nobody else may wait for them. */
const COMPILE_LIMIT_MS = 2_000
const COMPILERS_AT_ONCE = 2
const WAITING_MAX = 64
const CACHED_RESULTS = 256
/** The largest packet there is; a match keeps all of it. */
const SNAPLEN = 262_144

type Outcome = { readonly program: Uint8Array } | { readonly problem: string }

export interface FilterRequest {
  /** tcpdump's syntax, at most 16 KiB. */
  readonly expression: string
  /** Link type word of the packets that it will see. */
  readonly linkType: number
}

/**
 * Compiles FilterBPF with libpcap in a helper process that is killed when it takes too long, at
 * most two at once. Results, also failures, are remembered.
 */
export class FilterCompiler {
  readonly #limit = new FifoLimit(COMPILERS_AT_ONCE)
  readonly #results = new LRUCache<string, Outcome>({ max: CACHED_RESULTS })

  /**
   * The cBPF program. Fails with bad-bpf (libpcap's message, or that it is too complex), with
   * download-slots-exhausted when too many wait already, or with the signal's reason.
   */
  async compile(request: FilterRequest, signal: AbortSignal): Promise<Uint8Array> {
    const key = `${request.linkType} ${request.expression}`
    const outcome = this.#results.get(key) ?? (await this.#compileNew(request, signal))
    this.#results.set(key, outcome)
    if ('program' in outcome) return outcome.program
    throw new CapfleetError('bad-bpf', `FilterBPF does not compile: ${outcome.problem}`, {
      param: 'FilterBPF',
    })
  }

  async #compileNew(request: FilterRequest, signal: AbortSignal): Promise<Outcome> {
    if (this.#limit.waiting >= WAITING_MAX) {
      throw new CapfleetError(
        'download-slots-exhausted',
        `${WAITING_MAX} filters wait to be compiled already; try again later`,
        { retryAfterS: COMPILE_LIMIT_MS / 1000 },
      )
    }
    using _place = await this.#limit.acquire(signal)
    return await runCompiler(request, signal)
  }
}

async function runCompiler(request: FilterRequest, signal: AbortSignal): Promise<Outcome> {
  signal.throwIfAborted()
  const child = spawn(bpfCompilerPath, { stdio: ['pipe', 'pipe', 'pipe'], env: {} })
  const kill = (): void => void child.kill('SIGKILL')
  const limit = setTimeout(kill, COMPILE_LIMIT_MS)
  signal.addEventListener('abort', kill, { once: true })
  try {
    const result = await resultOf(child, inputOf(request))
    signal.throwIfAborted()
    if (result.status === 0) return checkProgram(result.output)
    if (result.status === 1 && result.message !== '') return { problem: result.message }
    return { problem: `it is too complex: compiling took more than ${COMPILE_LIMIT_MS / 1000} s or 256 MiB` }
  } finally {
    clearTimeout(limit)
    signal.removeEventListener('abort', kill)
  }
}

const INSTRUCTION_BYTES = 8
const JUMP_ALWAYS = 0x05

/** Only `protochain` makes a jump backwards, a loop that a packet could keep running. */
function checkProgram(program: Buffer): Outcome {
  for (let offset = 0; offset + INSTRUCTION_BYTES <= program.length; offset += INSTRUCTION_BYTES) {
    if (program.readUInt16LE(offset) === JUMP_ALWAYS && program.readInt32LE(offset + 4) < 0) {
      return { problem: 'protochain is not supported, because it loops; name the header to look at instead' }
    }
  }
  return { program }
}

/** Link type word and snaplen, 4 bytes each, little-endian, then the text. */
function inputOf({ linkType, expression }: FilterRequest): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32LE(linkType, 0)
  head.writeUInt32LE(SNAPLEN, 4)
  return Buffer.concat([head, Buffer.from(expression)])
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
