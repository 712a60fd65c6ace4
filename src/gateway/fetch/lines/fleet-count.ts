/**
 * A count of what a download over many devices would deliver: the sum of the devices, as far as that is what a merge of
 * them delivers.
 */
import type { z } from 'zod'
import type { CapfleetError } from '../../../shared/base/error.ts'
import type { FLEET_COUNT_LINES } from '../../../shared/contract/count-lines.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import type { CountEnd, CountLine, CountQuestion } from '../../fleet/questions/count-question.ts'
import { openDeviceCount } from './device-count.ts'
import { type FleetQuestion, fleetLines } from './fleet-lines.ts'
import type { LineParts, LineRequest, LineSource } from './line-answer.ts'
import { countedPart, mergedCount, sumOf } from './merged-count.ts'

export type FleetCountEnd = z.infer<typeof FLEET_COUNT_LINES.end>

export class FleetCount implements FleetQuestion<CountLine> {
  readonly #members: readonly FleetMember[]
  readonly #question: CountQuestion
  readonly #parts: LineParts
  readonly #isMerge: boolean
  readonly #counted = new Map<string, CountEnd>()
  readonly #unanswered: string[] = []

  constructor(members: readonly FleetMember[], question: CountQuestion, parts: LineParts) {
    this.#members = members
    this.#question = question
    this.#parts = parts
    this.#isMerge = members.length > 1
  }

  /** As fleetLines(). */
  lines(request: LineRequest): AsyncGenerator<readonly object[]> {
    return fleetLines(this.#members, this, request)
  }

  /** REQUIRES: all lines were read. */
  end(): FleetCountEnd {
    const partial = [...this.#counted].flatMap(([device, { complete }]) => (complete ? [] : [device]))
    const complete = this.#unanswered.length === 0 && partial.length === 0
    const counts = [...this.#counted.values()]
    const { packets, bytes, isExact } = this.#isMerge
      ? mergedCount(counts, this.#question.query)
      : { ...sumOf(counts), isExact: true }
    return {
      end: true,
      packets: String(packets),
      bytes: String(bytes),
      exact: complete && isExact,
      complete,
      devices: this.#members.length,
      unanswered: this.#unanswered.toSorted(),
      partial: partial.toSorted(),
    }
  }

  open(member: FleetMember, request: LineRequest): Promise<LineSource<CountLine>> {
    const { query, countBytesMax } = this.#question
    const asked = this.#isMerge ? countedPart(query) : query
    return openDeviceCount(member, { query: asked, countBytesMax }, this.#parts, request)
  }

  isProgress(line: CountLine): boolean {
    return !('end' in line)
  }

  take(device: string, line: CountLine): readonly object[] {
    if (!('end' in line)) return [{ device, ...line }]
    this.#counted.set(device, line)
    const { end: _end, ...counted } = line
    return [{ device, counted: true, ...counted }]
  }

  failed(device: string, { code, message }: CapfleetError): readonly object[] {
    // What it said before does not count.
    this.#counted.delete(device)
    this.#unanswered.push(device)
    return [{ device, error: { code, detail: message } }]
  }
}
