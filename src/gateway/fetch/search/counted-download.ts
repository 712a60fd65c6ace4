/**
 * A search for addresses at a device that cannot search: its packets are downloaded with a filter for the addresses,
 * and counted here. What it takes to trust the filter of a device is that of any download.
 */
import { addAbortListener } from 'node:events'
import { AddressCounter } from '../../../../native/address-counter.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import { NETWORK_LINK_TYPES, typeOfWord } from '../../../shared/pcap/link-types.ts'
import { PCAP_HEADER_BYTES } from '../../../shared/pcap/pcap-sizes.ts'
import { packQuestions } from '../../../shared/query/filter/address-list.ts'
import { looksDeeper } from '../../../shared/query/filter/joined-filter.ts'
import { behindTags } from '../../../shared/query/flow/flow-filter.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import { planMerge } from '../../fleet/plan/plan.ts'
import type { BoundedQuery } from '../../fleet/plan/within-bounds.ts'
import {
  type SeenAddress,
  type SeenEnd,
  type SeenLine,
  type SeenQuestion,
  seenUnsupported,
} from '../../fleet/questions/seen-question.ts'
import { FetchedDownload, type FetchParts } from '../body/fetch-download.ts'
import type { LineParts, LineRequest, LineSource } from '../lines/line-answer.ts'
import { isOfFilter } from '../proof/shown-filters.ts'

/** Some devices reject a longer filter, which has each address three times. */
const ADDRESSES_MAX = 32
/** Progress is for people. */
const PROGRESS_MS = 1_000
/** In the header of a PCAP. */
const LINK_TYPE_OFFSET = 20

export interface CountParts extends Pick<LineParts, 'answerLimit'> {
  readonly fetch: FetchParts
}

/** `cause` is why the device cannot search. */
type CountRequest = LineRequest & { readonly cause?: unknown }

/** Dispose it when it is not needed any more: that ends the download, and frees the stream. */
export class CountedDownload implements LineSource<SeenLine> {
  readonly #question: SeenQuestion
  readonly #download: FetchedDownload
  readonly #late: AbortSignal

  /**
   * Waits for a stream of the device. Fails with seen-unsupported if the question cannot be answered this way, and like
   * a download.
   */
  static async open(
    member: FleetMember,
    question: SeenQuestion,
    parts: CountParts,
    request: CountRequest,
  ): Promise<CountedDownload> {
    refuseUncountable(member, question, request.cause)
    const open = (words: string) =>
      CountedDownload.#open(member.device.name, question, parts, { ...request, words })
    try {
      return await open(behindTags(addressWords(question)))
    } catch (error) {
      if (!isAboutFilter(error)) throw error
    }
    // Captures of some link types refuse "vlan". Packets that are not of the addresses are not counted.
    try {
      return await open(`${addressWords(question)} or ${TAGGED}`)
    } catch (error) {
      if (!isAboutFilter(error) || question.query.filterBpf !== undefined) throw error
      throw seenUnsupported(
        member,
        `and its packets of the addresses cannot be counted: ${error.message}`,
        error,
      )
    }
  }

  static async #open(
    device: string,
    question: SeenQuestion,
    { fetch, answerLimit }: CountParts,
    request: LineRequest & { readonly words: string },
  ): Promise<CountedDownload> {
    const plan = planMerge(downloadedQuery(question, request.words), [device])
    const lost = new AbortController()
    const late = new AbortController()
    const download = await FetchedDownload.open(plan, fetch, {
      id: request.leaseId,
      user: request.user,
      class: 'bulk',
      waitMs: request.waitMs,
      signal: AbortSignal.any([request.signal, lost.signal, late.signal]),
      options: { onError: 'fail', align: false },
      onPosition: () => undefined,
      onWaited: () => void addAbortListener(answerLimit(), () => late.abort(tooSlow(device))),
      onLost: (reason) => lost.abort(reason),
    })
    return new CountedDownload(question, download, late.signal)
  }

  private constructor(question: SeenQuestion, download: FetchedDownload, late: AbortSignal) {
    this.#question = question
    this.#download = download
    this.#late = late
  }

  /** As LineAnswer.lines(). Fails like the body of a download. */
  async *lines(): AsyncGenerator<readonly SeenLine[]> {
    const { addresses, verifyBytesMax } = this.#question
    const { body } = this.#download
    const counter = new AddressCounter(packQuestions(addresses).ranges, 'capfleet-gateway')
    let header = Buffer.alloc(0)
    let readBytes = 0n
    let isRead = true
    let toldMs = performance.now()
    for await (const chunk of this.#chunks()) {
      // Only what follows shows that there is more.
      if (readBytes >= verifyBytesMax) {
        isRead = false
        break
      }
      counter.add(chunk)
      const headerBytes = Math.min(PCAP_HEADER_BYTES - header.length, chunk.length)
      header = Buffer.concat([header, chunk.subarray(0, headerBytes)])
      readBytes += BigInt(chunk.length - headerBytes)
      if (performance.now() - toldMs < PROGRESS_MS) continue
      toldMs = performance.now()
      yield [{ checkedBytes: String(readBytes) }]
    }
    const isWhole =
      isRead && !this.#late.aborted && body.result().perDevice.every(({ status }) => status === 'complete')
    // Others may have the stream.
    await this.#download[Symbol.asyncDispose]()
    yield [
      ...this.#counted(counter, isWhole),
      this.#end({ isWhole, otherLinkTypes: otherLinkTypesIn(header) }),
    ]
  }

  /** Ends early, without a failure, when the device is too slow. */
  async *#chunks(): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#download.body.chunks
    } catch (error) {
      if (error !== this.#late.reason) throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#download[Symbol.asyncDispose]()
    this.#download.body[Symbol.dispose]()
  }

  /** Where the download is not whole, packets that were not counted may be anywhere: devices may send them in any order. */
  #counted(counter: AddressCounter, isWhole: boolean): readonly SeenAddress[] {
    const { beginNs, endNs } = this.#question.query
    const spans = isWhole ? [] : [{ fromNs: String(beginNs), toNs: String(endNs) }]
    const counts = counter.counts()
    return this.#question.texts.flatMap((address, index) => {
      const { packets = 0n, bytes = 0n, firstNs, lastNs } = counts[index] ?? {}
      if (packets === 0n && isWhole) return []
      const times = packets === 0n ? {} : { firstNs: String(firstNs), lastNs: String(lastNs) }
      return [{ address, packets: String(packets), bytes: String(bytes), ...times, spans }]
    })
  }

  #end({
    isWhole,
    otherLinkTypes,
  }: {
    readonly isWhole: boolean
    readonly otherLinkTypes: number[]
  }): SeenEnd {
    const { agedOutBeforeNs } = this.#download.body.facts.claims
    return {
      end: true,
      addresses: this.#question.texts.length,
      complete: isWhole,
      ...(agedOutBeforeNs === undefined ? {} : { agedOutBeforeNs: String(agedOutBeforeNs) }),
      otherLinkTypes,
    }
  }
}

/** Link types of a body whose packets have no addresses. */
function otherLinkTypesIn(header: Buffer): number[] {
  if (header.length < PCAP_HEADER_BYTES) return []
  const linkType = typeOfWord(header.readUInt32LE(LINK_TYPE_OFFSET))
  return NETWORK_LINK_TYPES.has(linkType) ? [] : [linkType]
}

/** Fails with seen-unsupported if the question cannot be answered by a download. */
function refuseUncountable(
  member: FleetMember,
  { query: { filterBpf }, verify, texts, isForced }: SeenQuestion,
  cause: unknown,
): void {
  if (!verify) throw seenUnsupported(member, 'with Verify=1, its packets are downloaded and counted', cause)
  if (isForced) throw seenUnsupported(member, 'and you may only see packets that pass a filter', cause)
  if (texts.length > ADDRESSES_MAX)
    throw seenUnsupported(
      member,
      `ask for at most ${ADDRESSES_MAX} addresses, which are counted in a download`,
      cause,
    )
  if (filterBpf !== undefined && looksDeeper(filterBpf))
    throw seenUnsupported(
      member,
      'and FilterBPF has a word that changes what follows it; leave it out',
      cause,
    )
}

/** A VLAN tag of this type is not found by "vlan", although addresses after it are counted. */
const OTHER_TAG = 'ether proto 0x9200'
/** All packets with VLAN tags, also in captures that refuse "vlan": Linux cooked captures may have them, raw ones have none. */
const TAGGED = ['0x8100', '0x88a8', '0x9100'].map((type) => `ether proto ${type}`).join(' or ')

/** Finds the packets of all addresses that have no tag. */
function addressWords({ texts }: SeenQuestion): string {
  const words = texts.map((text) => `${text.includes('/') ? 'net' : 'host'} ${text}`)
  return [...words, OTHER_TAG].join(' or ')
}

function downloadedQuery({ query }: SeenQuestion, words: string): BoundedQuery {
  const { filterBpf } = query
  return { ...query, filterBpf: filterBpf === undefined ? words : `(${filterBpf}) and (${words})` }
}

function isAboutFilter(error: unknown): error is CapfleetError {
  return error instanceof CapfleetError && isOfFilter(error)
}

function tooSlow(device: string): CapfleetError {
  return new CapfleetError('device-timeout', `device ${device} took too long to begin a download`, {
    members: { devices: [device] },
  })
}
