/** A search for addresses at many devices, whose lines are passed on as they arrive. No device waits for another. */
import type { z } from 'zod'
import type { CapfleetError } from '../../shared/base/error.ts'
import type { FLEET_SEEN_LINES } from '../../shared/contract/seen-parameters.ts'
import { deviceFailure } from '../device/device-failure.ts'
import type { FleetMember } from '../fleet/fleet.ts'
import type { SeenEnd, SeenQuestion } from '../fleet/seen-question.ts'
import { openDeviceSearch, type SearchParts } from './device-search.ts'
import { interleaved } from './interleaved.ts'
import type { SeenRequest } from './seen-answer.ts'

export type FleetSeenEnd = z.infer<typeof FLEET_SEEN_LINES.end>

/** Parts of answers that are kept while the client reads those before them. Each has at most 64 KiB, or one line. */
const HELD_PARTS = 64
/** Progress is for people. */
const PROGRESS_MS = 1_000

export class FleetSearch {
  readonly #members: readonly FleetMember[]
  readonly #question: SeenQuestion
  readonly #parts: SearchParts
  readonly #request: SeenRequest
  readonly #unanswered: string[] = []
  readonly #partial: string[] = []
  readonly #agedOut: { readonly device: string; readonly beforeNs: string }[] = []
  readonly #otherLinkTypes: { readonly device: string; readonly linkTypes: number[] }[] = []

  constructor(
    members: readonly FleetMember[],
    question: SeenQuestion,
    parts: SearchParts,
    request: SeenRequest,
  ) {
    this.#members = members
    this.#question = question
    this.#parts = parts
    this.#request = request
  }

  /** Some lines at a time. Ends early if the signal of the request aborts. */
  async *lines(): AsyncGenerator<readonly object[]> {
    const parts = interleaved(
      this.#members.map((member, index) => this.#linesOf(member, index)),
      // A device that is still counting, and has a stream, must not wait for a client that reads slowly.
      { heldMax: HELD_PARTS, mayDrop: (lines) => lines.every((line) => 'checkedBytes' in line) },
    )
    for await (const lines of parts) yield lines.flat()
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

  async *#linesOf(member: FleetMember, index: number): AsyncGenerator<readonly object[]> {
    const device = member.device.name
    const request = { ...this.#request, leaseId: `${this.#request.leaseId}.${index}` }
    const isDue = everyMs(PROGRESS_MS)
    try {
      await using search = await openDeviceSearch(member, this.#question, this.#parts, request)
      for await (const lines of search.lines()) {
        const shown = lines.flatMap((line) => {
          if ('end' in line) {
            this.#note(device, line)
            return []
          }
          return !('checkedBytes' in line) || isDue() ? [{ device, ...line }] : []
        })
        if (shown.length > 0) yield shown
      }
    } catch (error) {
      if (this.#request.signal.aborted) return
      const failure = deviceFailure(device, error)
      if (this.#notesRemoval(device, failure)) return
      this.#unanswered.push(device)
      yield [{ device, error: { code: failure.code, detail: failure.message } }]
    }
  }

  #note(device: string, { complete, agedOutBeforeNs, otherLinkTypes }: SeenEnd): void {
    if (!complete) this.#partial.push(device)
    if (agedOutBeforeNs !== undefined) this.#agedOut.push({ device, beforeNs: agedOutBeforeNs })
    if (otherLinkTypes.length > 0) this.#otherLinkTypes.push({ device, linkTypes: otherLinkTypes })
  }

  /** Whether the device has nothing of the range any more, which is an answer too. */
  #notesRemoval(device: string, { code }: CapfleetError): boolean {
    if (code !== 'aged-out') return false
    this.#agedOut.push({ device, beforeNs: String(this.#question.query.endNs) })
    return true
  }
}

/** Whether so much time has passed since it last said so. */
function everyMs(intervalMs: number): () => boolean {
  let lastMs = Number.NEGATIVE_INFINITY
  return () => {
    const nowMs = performance.now()
    if (nowMs - lastMs < intervalMs) return false
    lastMs = nowMs
    return true
  }
}

function byDevice(a: { readonly device: string }, b: { readonly device: string }): number {
  return a.device < b.device ? -1 : 1
}
