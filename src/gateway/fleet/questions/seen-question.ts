/** A search for addresses as devices are asked for it, and their answers. A device is not trusted. */
import type { z } from 'zod'
import { CapfleetError } from '../../../shared/base/error.ts'
import { minuteAfter } from '../../../shared/base/whole-minutes.ts'
import { SEEN_LINES } from '../../../shared/contract/seen-answers.ts'
import { SEEN_PARAMETERS } from '../../../shared/contract/seen-parameters.ts'
import { formatDownloadQuery } from '../../../shared/query/download/format-download-query.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { deviceBrokeOff, deviceProtocol } from '../../device/device-failure.ts'
import { parseDeviceJson } from '../../device/device-json.ts'
import type { FleetMember } from '../fleet.ts'
import type { BoundedQuery } from '../plan/within-bounds.ts'
import { failureInLine } from './failure-in-line.ts'
import { kindInWords } from './kind-in-words.ts'

export interface SeenOptions {
  /** A canonical list of questions. */
  readonly addresses: string
  readonly verify: boolean
  readonly verifyBytesMax: bigint
}

export interface SeenQuestion extends SeenOptions {
  /** The range, and the filters of the caller. */
  readonly query: BoundedQuery
  /** The entries of the list. */
  readonly texts: readonly string[]
  /** Whether packets are hidden from the caller: then only counts may be shown. */
  readonly isForced: boolean
}

/** Fails with bad-parameter if only packets could answer it. */
export function seenQuestion(query: BoundedQuery, options: SeenOptions): SeenQuestion {
  const isForced = query.forcedFilters.length > 0
  if (!options.verify) {
    if (query.filterBpf !== undefined)
      throw badParameter('FilterBPF', 'needs Verify=1, because only packets can be compared with a filter')
    if (isForced)
      throw badParameter(
        'Verify',
        'must be 1 for callers with a filter: times alone would reveal what it hides',
      )
  }
  return { ...options, query, isForced, texts: options.addresses.split(',') }
}

/** Path and query on a device. */
export function seenTarget({ query, addresses, verify, verifyBytesMax }: SeenQuestion): string {
  const rows = SEEN_PARAMETERS
  const pairs = [
    [rows.addresses.name, addresses],
    ...(verify
      ? [
          [rows.verify.name, rows.verify.type.write(true)],
          [rows.verifyBytesMax.name, rows.verifyBytesMax.type.write(verifyBytesMax)],
        ]
      : []),
  ]
  const own = pairs.map(([name, value = '']) => `${name}=${encodeURIComponent(value)}`)
  return `/api/v1/seen?${[formatDownloadQuery(query), ...own].join('&')}`
}

export type SeenAddress = z.infer<typeof SEEN_LINES.address>
export type SeenEnd = z.infer<typeof SEEN_LINES.end>
export type SeenLine = SeenAddress | z.infer<typeof SEEN_LINES.progress> | SeenEnd

const FORMS = [SEEN_LINES.address, SEEN_LINES.progress, SEEN_LINES.end, SEEN_LINES.error] as const

/** Reads the answer of one device, line by line, and reduces it to what the caller may have of it. */
export class SeenReader {
  readonly #device: string
  readonly #question: SeenQuestion
  /** Entries of the list without a line so far. */
  readonly #open: Set<string>
  #hasEnded = false

  constructor(device: string, question: SeenQuestion) {
    this.#device = device
    this.#question = question
    this.#open = new Set(question.texts)
  }

  /** undefined: the line is not for the caller. Fails with device-protocol, or with the error of the device. */
  read(text: string): SeenLine | undefined {
    const value = parseDeviceJson(this.#device, text)
    const line = lineOf(value)
    if (line === undefined || this.#hasEnded)
      throw this.#protocol('sent something other than the lines of a search')
    if ('error' in line) throw failureInLine(this.#device, line.error)
    if ('address' in line) return this.#address(line)
    if ('end' in line) return this.#end(line)
    if (!this.#question.verify) throw this.#protocol('reported progress without reading packets')
    // How much is stored is hidden from callers with a filter.
    return this.#question.isForced ? undefined : line
  }

  /** Fails like an answer that broke off if it has no last line. */
  finish(): void {
    if (!this.#hasEnded) throw deviceBrokeOff(this.#device)
  }

  #address(line: SeenAddress): SeenAddress {
    if (!this.#open.delete(line.address))
      throw this.#protocol('reported an address twice, or one that was not asked for')
    const isCount = line.packets !== undefined && line.bytes !== undefined && line.spans.length === 0
    if (this.#question.isForced && !isCount)
      throw this.#protocol('reported times without counting packets, which you may not see')
    if (!isPossible(line, this.#question)) throw this.#protocol('reported impossible times or counts')
    return line
  }

  #end(line: SeenEnd): SeenEnd {
    const asked = this.#question.texts.length
    if (line.addresses !== asked)
      throw this.#protocol(`searched for ${line.addresses} addresses instead of ${asked}`)
    this.#hasEnded = true
    if (!this.#question.isForced) return line
    const { agedOutBeforeNs, ...rest } = line
    const shown = { ...rest, otherLinkTypes: [] }
    if (agedOutBeforeNs === undefined) return shown
    return { ...shown, agedOutBeforeNs: String(minuteAfter(BigInt(agedOutBeforeNs))) }
  }

  #protocol(what: string): CapfleetError {
    return deviceProtocol(this.#device, what)
  }
}

/** Whether the line says something, and nothing that contradicts itself or the question. */
function isPossible({ spans, packets, firstNs, lastNs }: SeenAddress, { verify }: SeenQuestion): boolean {
  const isCounted = packets !== undefined && BigInt(packets) > 0n
  if (isCounted !== (firstNs !== undefined && lastNs !== undefined)) return false
  if (isCounted && (!verify || BigInt(firstNs ?? 0) > BigInt(lastNs ?? 0))) return false
  return (isCounted || spans.length > 0) && spans.every(({ fromNs, toNs }) => BigInt(fromNs) < BigInt(toNs))
}

function lineOf(value: unknown): z.infer<(typeof FORMS)[number]> | undefined {
  for (const form of FORMS) {
    const { data } = form.safeParse(value)
    if (data !== undefined) return data
  }
  return undefined
}

/** The error about a device that does not have the path, and why its packets are not counted either. */
export function seenUnsupported(member: FleetMember, why: string, cause?: unknown): CapfleetError {
  const { name } = member.device
  return new CapfleetError(
    'seen-unsupported',
    `device ${name} cannot search for addresses, because it is ${kindInWords(member)}: ${why}`,
    { members: { devices: [name] }, ...(cause === undefined ? {} : { cause }) },
  )
}
