/** A file of alerts as the downloads or exports that it asks for: one for each conversation and time. */
import { createReadStream } from 'node:fs'
import { CapfleetError } from '../../../shared/base/error.ts'
import { type Alert, readAlertLine } from '../../../shared/query/flow/alert-line.ts'
import { flowKey } from '../../../shared/query/flow/flow-filter.ts'
import { type PivotMargins, pivotRange } from '../../../shared/query/flow/pivot.ts'
import { usageFailure } from '../../client-failure.ts'
import { STANDARD_INPUT } from '../common/capture-name-of.ts'

/** What the packets of an alert become. */
export type AlertResult = 'download' | 'export'

/** One or more alerts whose times would overlap. */
export interface MergedAlert extends Alert {
  readonly count: number
}

export interface AlertFileOptions extends PivotMargins {
  readonly result: AlertResult
  /** Maximum number of downloads or exports. */
  readonly alertsMax: number
  /** IANA name: the zone of the times that name none. Without it these are refused. */
  readonly zone: string | undefined
}

const MISTAKES_SHOWN_MAX = 10
/** An event of Suricata may contain the payload of a stream, twice, and HTTP bodies. */
const LINE_BYTES_MAX = 4_194_304

/** What the lines of a file contain. */
export class AlertFile {
  readonly #options: AlertFileOptions
  readonly #byConversation = new Map<string, readonly MergedAlert[]>()
  readonly #shownMistakes: string[] = []
  #lines = 0
  #used = 0
  #needed = 0
  #mistakes = 0
  #withoutAddress = 0
  #firstWithoutAddress = ''

  private constructor(options: AlertFileOptions) {
    this.#options = options
  }

  /** `file` "-": standard input. Fails with a ClientFailure if it cannot be read, or has more alerts than allowed. */
  static async read(file: string, options: AlertFileOptions): Promise<AlertFile> {
    const found = new AlertFile(options)
    for await (const line of linesOf(file)) {
      found.#take(line)
      if (found.#needed > options.alertsMax)
        throw usageFailure(
          `${shownFile(file)} needs more than ${options.alertsMax} ${options.result}s (from line ${found.#lines} on); ` +
            'select fewer alerts, for example with grep or jq, or allow more with --alerts-max',
        )
    }
    return found
  }

  /** The downloads: by conversation, in the order in which these appear. */
  get alerts(): readonly MergedAlert[] {
    return [...this.#byConversation.values()].flat()
  }

  /** Number of lines that could not be read. */
  get mistakes(): number {
    return this.#mistakes
  }

  /** What users should know about the lines. */
  get notes(): readonly string[] {
    const unshown = this.#mistakes - this.#shownMistakes.length
    return [
      ...this.#shownMistakes,
      ...(unshown === 0 ? [] : [`not shown: ${counted(unshown, 'line')} that could not be read`]),
      ...(this.#withoutAddress === 0
        ? []
        : [
            `without an address: ${counted(this.#withoutAddress, 'line')}, the first is ${this.#firstWithoutAddress}`,
          ]),
      `${counted(this.#used, 'alert')} in ${counted(this.#lines, 'line')}: ${counted(this.#needed, this.#options.result)}`,
    ]
  }

  /** undefined: a line that is too long. */
  #take(line: string | undefined): void {
    this.#lines += 1
    if (line?.trim() === '') return
    try {
      if (line === undefined)
        throw new CapfleetError('bad-parameter', `it is longer than ${LINE_BYTES_MAX} bytes`)
      const alert = readAlertLine(line, this.#options.zone)
      if ('about' in alert) this.#leaveOut(alert.about)
      else this.#merge(alert)
    } catch (error) {
      if (!(error instanceof CapfleetError)) throw error
      this.#mistakes += 1
      if (this.#mistakes <= MISTAKES_SHOWN_MAX)
        this.#shownMistakes.push(`line ${this.#lines}: ${error.message}`)
    }
  }

  #leaveOut(about: string): void {
    this.#withoutAddress += 1
    if (this.#withoutAddress === 1) this.#firstWithoutAddress = `line ${this.#lines} (${about})`
  }

  /** Fails with bad-parameter if its range is outside the times that PCAP can carry. */
  #merge(alert: Alert): void {
    pivotRange(alert, this.#options)
    const key = `${flowKey(alert.flow)} ${alert.isTunnelled}`
    const known = this.#byConversation.get(key) ?? []
    const others = known.filter((other) => !this.#overlap(alert, other))
    const merged = known.filter((other) => !others.includes(other)).reduce(union, { ...alert, count: 1 })
    this.#byConversation.set(key, [...others, merged])
    this.#needed += others.length + 1 - known.length
    this.#used += 1
  }

  #overlap(one: Alert, other: Alert): boolean {
    const [first, second] = [pivotRange(one, this.#options), pivotRange(other, this.#options)]
    return first.beginNs <= second.endNs && second.beginNs <= first.endNs
  }
}

/** "1 line", "2 lines" */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

export function shownFile(file: string): string {
  return file === STANDARD_INPUT ? 'standard input' : file
}

/** Both alerts as one. Title and direction are those of the earlier one. */
function union(one: MergedAlert, other: MergedAlert): MergedAlert {
  return {
    ...(other.firstNs <= one.firstNs ? other : one),
    lastNs: one.lastNs > other.lastNs ? one.lastNs : other.lastNs,
    count: one.count + other.count,
  }
}

const NEWLINE = 0x0a

/** Without their ends; undefined stands for one that is too long. */
async function* linesOf(file: string): AsyncGenerator<string | undefined, void> {
  let pieces: Buffer[] = []
  let bytes = 0
  const add = (piece: Buffer): void => {
    bytes += piece.length
    pieces = bytes > LINE_BYTES_MAX ? [] : [...pieces, piece]
  }
  const take = (): string | undefined => {
    const line = bytes > LINE_BYTES_MAX ? undefined : Buffer.concat(pieces).toString('utf8')
    pieces = []
    bytes = 0
    return line
  }
  for await (const chunk of chunksOf(file)) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, end))
      yield take()
      from = end + 1
    }
    add(chunk.subarray(from))
  }
  if (bytes > 0) yield take()
}

async function* chunksOf(file: string): AsyncGenerator<Buffer, void> {
  const source: AsyncIterable<Buffer> = file === STANDARD_INPUT ? process.stdin : createReadStream(file)
  try {
    yield* source
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw usageFailure(`--alert: the file ${file} does not exist`)
    if (code === 'EISDIR') throw usageFailure(`--alert: ${file} is a folder; name a file in it`)
    throw usageFailure(`--alert: ${message}`)
  }
}
