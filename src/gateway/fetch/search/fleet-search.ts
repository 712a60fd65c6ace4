/** A search for addresses at many devices. */
import type { z } from 'zod'
import type { CapfleetError } from '../../../shared/base/error.ts'
import type { FLEET_SEEN_LINES } from '../../../shared/contract/seen-answers.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import type { SeenEnd, SeenLine, SeenQuestion } from '../../fleet/questions/seen-question.ts'
import { type FleetQuestion, fleetLines } from '../lines/fleet-lines.ts'
import type { LineRequest, LineSource } from '../lines/line-answer.ts'
import { openDeviceSearch, type SearchParts } from './device-search.ts'

export type FleetSeenEnd = z.infer<typeof FLEET_SEEN_LINES.end>

export class FleetSearch implements FleetQuestion<SeenLine> {
  readonly #members: readonly FleetMember[]
  readonly #question: SeenQuestion
  readonly #parts: SearchParts
  readonly #unanswered: string[] = []
  readonly #partial: string[] = []
  readonly #agedOut: { readonly device: string; readonly beforeNs: string }[] = []
  readonly #otherLinkTypes: { readonly device: string; readonly linkTypes: number[] }[] = []

  constructor(members: readonly FleetMember[], question: SeenQuestion, parts: SearchParts) {
    this.#members = members
    this.#question = question
    this.#parts = parts
  }

  /** As fleetLines(). */
  lines(request: LineRequest): AsyncGenerator<readonly object[]> {
    return fleetLines(this.#members, this, request)
  }

  /** REQUIRES: all lines were read. */
  end(): FleetSeenEnd {
    return {
      end: true,
      addresses: this.#question.texts.length,
      devices: this.#members.length,
      complete: this.#unanswered.length === 0 && this.#partial.length === 0,
      unanswered: this.#unanswered.toSorted(),
      partial: this.#partial.toSorted(),
      agedOut: this.#agedOut.toSorted(byDevice),
      otherLinkTypes: this.#otherLinkTypes.toSorted(byDevice),
    }
  }

  open(member: FleetMember, request: LineRequest): Promise<LineSource<SeenLine>> {
    return openDeviceSearch(member, this.#question, this.#parts, request)
  }

  isProgress(line: SeenLine): boolean {
    return 'checkedBytes' in line
  }

  take(device: string, line: SeenLine): readonly object[] {
    if (!('end' in line)) return [{ device, ...line }]
    this.#note(device, line)
    return []
  }

  failed(device: string, { code, message }: CapfleetError): readonly object[] {
    // The device has nothing of the range any more, which is an answer too.
    if (code === 'aged-out') {
      this.#agedOut.push({ device, beforeNs: String(this.#question.query.endNs) })
      return []
    }
    this.#unanswered.push(device)
    return [{ device, error: { code, detail: message } }]
  }

  #note(device: string, { complete, agedOutBeforeNs, otherLinkTypes }: SeenEnd): void {
    if (!complete) this.#partial.push(device)
    if (agedOutBeforeNs !== undefined) this.#agedOut.push({ device, beforeNs: agedOutBeforeNs })
    if (otherLinkTypes.length > 0) this.#otherLinkTypes.push({ device, linkTypes: otherLinkTypes })
  }
}

function byDevice(a: { readonly device: string }, b: { readonly device: string }): number {
  return a.device < b.device ? -1 : 1
}
