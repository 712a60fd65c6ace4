/** A count of packets as devices are asked for it, and their answers. A device is not trusted. */
import type { z } from 'zod'
import { CapfleetError } from '../../../shared/base/error.ts'
import { minuteAfter } from '../../../shared/base/whole-minutes.ts'
import { COUNT_LINES } from '../../../shared/contract/count-lines.ts'
import { PCAP_HEADER_BYTES } from '../../../shared/pcap/pcap-sizes.ts'
import { COUNT_PARAMETERS } from '../../../shared/query/download/count-query.ts'
import { formatDownloadQuery } from '../../../shared/query/download/format-download-query.ts'
import { deviceBrokeOff, deviceProtocol } from '../../device/device-failure.ts'
import { parseDeviceJson } from '../../device/device-json.ts'
import type { FleetMember } from '../fleet.ts'
import type { BoundedQuery } from '../plan/within-bounds.ts'
import { failureInLine } from './failure-in-line.ts'
import { kindInWords } from './kind-in-words.ts'

export interface CountQuestion {
  /** What each device is asked for. */
  readonly query: BoundedQuery
  readonly countBytesMax: bigint
}

/** Path and query on a device. */
export function countTarget({ query, countBytesMax }: CountQuestion): string {
  const { name, type } = COUNT_PARAMETERS.countBytesMax
  return `/api/v1/pcap/count?${formatDownloadQuery(query)}&${name}=${type.write(countBytesMax)}`
}

export type CountProgress = z.infer<typeof COUNT_LINES.progress>
export type CountEnd = z.infer<typeof COUNT_LINES.end>
export type CountLine = CountProgress | CountEnd

/** Of 2^64, which no count of a device exceeds. */
const DIGITS_MAX = 20

const FORMS = [COUNT_LINES.end, COUNT_LINES.progress, COUNT_LINES.error] as const

/** Reads the answer of one device, line by line, and reduces it to what the caller may have of it. */
export class CountReader {
  readonly #device: string
  readonly #isForced: boolean
  #hasEnded = false

  constructor(device: string, { query }: CountQuestion) {
    this.#device = device
    this.#isForced = query.forcedFilters.length > 0
  }

  /** undefined: the line is not for the caller. Fails with device-protocol, or with the error of the device. */
  read(text: string): CountLine | undefined {
    const value = parseDeviceJson(this.#device, text)
    const line = FORMS.map((form) => form.safeParse(value).data).find((data) => data !== undefined)
    if (line === undefined || this.#hasEnded)
      throw deviceProtocol(this.#device, 'sent something other than the lines of a count')
    if ('error' in line) throw failureInLine(this.#device, line.error)
    if (Object.values(line).some((member) => typeof member === 'string' && member.startsWith('-')))
      throw deviceProtocol(this.#device, 'reported a negative count')
    if (Object.values(line).some((member) => typeof member === 'string' && member.length > DIGITS_MAX))
      throw deviceProtocol(this.#device, 'reported an impossible count')
    if ('end' in line) return this.#end(line)
    return this.#isForced ? undefined : line
  }

  /** Fails like an answer that broke off if it has no last line. */
  finish(): void {
    if (!this.#hasEnded) throw deviceBrokeOff(this.#device)
  }

  #end(line: CountEnd): CountEnd {
    this.#hasEnded = true
    const isContradiction = line.complete && line.countedToNs !== undefined
    if (isContradiction || BigInt(line.bytes) < BigInt(PCAP_HEADER_BYTES))
      throw deviceProtocol(this.#device, 'reported a count that contradicts itself')
    if (!this.#isForced) return line
    // How much is stored is hidden from callers with a filter, and the time of a packet that their filter hides.
    const { checkedBytes: _read, rangeBytes: _stored, agedOutBeforeNs, countedToNs, ...rest } = line
    if (countedToNs !== undefined)
      throw deviceProtocol(this.#device, 'ended a count early, which would reveal how much is stored')
    if (agedOutBeforeNs === undefined) return rest
    return { ...rest, agedOutBeforeNs: String(minuteAfter(BigInt(agedOutBeforeNs))) }
  }
}

/** The error about a device that does not have the path. */
export function countUnsupported(member: FleetMember, cause?: unknown): CapfleetError {
  const { name } = member.device
  return new CapfleetError(
    'count-unsupported',
    `device ${name} cannot count the packets of a download, because it is ${kindInWords(member)}; ` +
      'leave it out, or download the packets',
    { members: { devices: [name] }, ...(cause === undefined ? {} : { cause }) },
  )
}
