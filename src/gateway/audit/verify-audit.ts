/**
 * Checks that the audit is as it was written. Each line contains the hash of the previous one, so altered, missing
 * and inserted lines are detected and located. Anyone who can write the files can still cut lines off at the end
 * of a chain, or recompute all hashes; that is only detected against an end that was noted earlier (`expected`).
 */
import { open, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { type AuditFile, listChains } from './audit-files.ts'
import { CHAIN_BEGIN, type ChainEnd, LINE_BYTES_MAX, type ReadLine, readLine } from './audit-line.ts'
import type { PlacedLine } from './lines-backwards.ts'

export interface AuditVerdict {
  readonly chains: readonly ChainVerdict[]
  /** Whether no problem was found. */
  readonly isWhole: boolean
}

export interface ChainVerdict {
  readonly chain: string
  readonly files: number
  /** Number of lines that are as they were written. */
  readonly lines: number
  /** Number of the oldest file. Earlier ones having been removed is not a problem: old files expire. */
  readonly firstFile: number
  readonly end: ChainEnd
  /** Bytes after the last line: from a line being written, or one whose process was killed. */
  readonly tornBytes: number
  /** At most PROBLEMS_MAX; `problemCount` counts all. */
  readonly problems: readonly AuditProblem[]
  readonly problemCount: number
}

export interface AuditProblem {
  /**
   * altered: the line is not as it was written. missing: lines or files before it do not exist. replaced: the line
   * before it was a different one. misplaced: it belongs further up. cut-off: the chain must have continued.
   */
  readonly kind: 'altered' | 'missing' | 'replaced' | 'misplaced' | 'cut-off'
  /** File name in the folder. */
  readonly file: string
  /** Line number from 1; `byte` is its offset from 0. */
  readonly line: number
  readonly offset: number
  readonly says: string
}

export interface VerifyOptions {
  /** Chain ends that were noted earlier, by chain. */
  readonly expected?: ReadonlyMap<string, ChainEnd>
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void
}

const PROBLEMS_MAX = 100
const BLOCK_BYTES = 1_048_576
const LINE_END = 0x0a

/** Checks all files of all chains. Fails with the errors of reading them. */
export async function verifyAudit(
  folder: string,
  { expected = new Map(), onProgress = () => undefined }: VerifyOptions = {},
): Promise<AuditVerdict> {
  const chains: ChainVerdict[] = []
  const found = await listChains(folder)
  const totalBytes = await sizeOf([...found.values()].flat())
  let doneBytes = 0
  for (const chain of new Set([...found.keys(), ...expected.keys()])) {
    const check = new ChainCheck(chain, expected.get(chain))
    const files = found.get(chain) ?? []
    for (const [index, file] of files.entries()) {
      await check.file(file, {
        isLast: index === files.length - 1,
        onRead: (bytes) => {
          doneBytes += bytes
          onProgress(doneBytes, totalBytes)
        },
      })
    }
    chains.push(check.verdict())
  }
  return { chains, isWhole: chains.every(({ problemCount }) => problemCount === 0) }
}

async function sizeOf(files: readonly AuditFile[]): Promise<number> {
  const sizes = await Promise.all(files.map(async ({ path }) => (await stat(path)).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}

interface Place {
  readonly file: string
  readonly line: number
  readonly offset: number
}

interface FileReading {
  readonly isLast: boolean
  readonly onRead: (bytes: number) => void
}

/** What the next line must contain. */
interface Expectation {
  readonly seq: number
  /** Hash of the previous line. */
  readonly prev: string
  /** Number of lines before it that were altered; the original may have had fewer. */
  readonly altered: number
}

class ChainCheck {
  readonly #chain: string
  readonly #noted: ChainEnd | undefined
  #files = 0
  #lines = 0
  #firstFile = 0
  #number = 0
  #next: Expectation | undefined
  #end = CHAIN_BEGIN
  #tornBytes = 0
  readonly #problems: AuditProblem[] = []
  #problemCount = 0

  constructor(chain: string, noted: ChainEnd | undefined) {
    this.#chain = chain
    this.#noted = noted
  }

  async file(file: AuditFile, { isLast, onRead }: FileReading): Promise<void> {
    const name = basename(file.path)
    this.#enter(file, name)
    const lines = readLines(file.path, onRead)
    for (let line = 1; ; line += 1) {
      const { value, done = false } = await lines.next()
      const place = { file: name, line, offset: value.offset }
      if (!done) this.#look(value.bytes, place)
      else if (value.bytes.length > 0) this.#lookTorn(value.bytes, place, isLast)
      if (done) return
    }
  }

  verdict(): ChainVerdict {
    this.#missNoted()
    return {
      chain: this.#chain,
      files: this.#files,
      lines: this.#lines,
      firstFile: this.#firstFile,
      end: this.#end,
      tornBytes: this.#tornBytes,
      problems: this.#problems,
      problemCount: this.#problemCount,
    }
  }

  #enter({ number }: AuditFile, file: string): void {
    this.#files += 1
    if (this.#files === 1) {
      this.#firstFile = number
      if (number === 1) this.#next = { seq: 1, prev: CHAIN_BEGIN.hash, altered: 0 }
    } else if (number !== this.#number + 1) {
      const gone = number - this.#number - 1
      this.#tell(
        'missing',
        { file, line: 1, offset: 0 },
        `${gone} file${gone > 1 ? 's' : ''} missing before this one`,
      )
      this.#next = undefined
    }
    this.#number = number
  }

  #look(bytes: Buffer, place: Place): void {
    const read = readLine(bytes)
    if (read === undefined) {
      this.#tell('altered', place, 'the line was changed after it was written')
      if (this.#next !== undefined) this.#next = { ...this.#next, altered: this.#next.altered + 1 }
      return
    }
    this.#lines += 1
    const { seq, hash } = read
    if (seq === this.#noted?.seq && hash !== this.#noted.hash)
      this.#tell('replaced', place, `line ${seq} of the chain differs from the one that was noted`)
    if (this.#next !== undefined && seq < this.#next.seq) {
      this.#tell('misplaced', place, `line ${seq} of the chain is in the place of line ${this.#next.seq}`)
      return
    }
    if (this.#next !== undefined) this.#compare(read, this.#next, place)
    this.#next = { seq: seq + 1, prev: hash, altered: 0 }
    this.#end = { seq, hash }
  }

  #compare({ seq, prev }: ReadLine, expected: Expectation, place: Place): void {
    const missing = seq - expected.seq - expected.altered
    if (missing > 0)
      this.#tell('missing', place, `${countOf(missing, 'line')} of the chain missing before this one`)
    else if (expected.altered === 0 && expected.prev !== prev)
      this.#tell('replaced', place, 'it does not follow from the line before it')
  }

  /** A killed process leaves the start of a line at the end of its last file, and nothing else. */
  #lookTorn(rest: Buffer, place: Place, isLast: boolean): void {
    if (isLast && !hasWholeLine(rest)) this.#tornBytes = rest.length
    else this.#tell('altered', place, 'the file does not end with a complete line')
  }

  /** A noted end was in the chain, so the chain cannot end before it. */
  #missNoted(): void {
    const noted = this.#noted?.seq ?? 0
    if (noted <= this.#end.seq) return
    const place = { file: this.#chain, line: 0, offset: 0 }
    this.#tell('cut-off', place, `the chain had a line ${noted}, but now ends with line ${this.#end.seq}`)
  }

  #tell(kind: AuditProblem['kind'], place: Place, says: string): void {
    this.#problemCount += 1
    if (this.#problems.length < PROBLEMS_MAX) this.#problems.push({ kind, ...place, says })
  }
}

function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** Whether the bytes contain a complete line: an incomplete one never contains its own hash. */
function hasWholeLine(rest: Buffer): boolean {
  return rest.length > LINE_BYTES_MAX || /,"hash":"[0-9a-f]{64}"\}./s.test(rest.toString('latin1'))
}

/** Yields each line without its newline; returns what follows the last one. Overlong lines are yielded in pieces. */
async function* readLines(
  path: string,
  onRead: (bytes: number) => void,
): AsyncGenerator<PlacedLine, PlacedLine> {
  await using file = await open(path, 'r')
  const block = Buffer.allocUnsafe(BLOCK_BYTES)
  let rest: Buffer = Buffer.alloc(0)
  let offset = 0
  for (;;) {
    const { bytesRead } = await file.read(block, 0, block.length)
    if (bytesRead === 0) return { bytes: rest, offset }
    onRead(bytesRead)
    const data = Buffer.concat([rest, block.subarray(0, bytesRead)])
    let begin = 0
    for (let end = data.indexOf(LINE_END); end >= 0; end = data.indexOf(LINE_END, begin)) {
      yield { bytes: data.subarray(begin, end), offset: offset + begin }
      begin = end + 1
    }
    if (data.length - begin > LINE_BYTES_MAX) {
      yield { bytes: data.subarray(begin), offset: offset + begin }
      begin = data.length
    }
    offset += begin
    rest = data.subarray(begin)
  }
}
