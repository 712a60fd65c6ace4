/**
 * A search for addresses at a device that cannot search: its packets are downloaded with a filter for the addresses,
 * and counted here. What it takes to trust the filter of a device is that of any download.
 */
import { AddressCounter } from '../../../native/address-counter.ts'
import { NETWORK_LINK_TYPES, typeOfWord } from '../../shared/pcap/link-types.ts'
import { PCAP_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'
import { packQuestions } from '../../shared/query/address-list.ts'
import { behindTags } from '../../shared/query/flow-filter.ts'
import { looksDeeper } from '../../shared/query/joined-filter.ts'
import type { FleetMember } from '../fleet/fleet.ts'
import { planMerge } from '../fleet/plan.ts'
import {
  type SeenAddress,
  type SeenEnd,
  type SeenLine,
  type SeenQuestion,
  seenUnsupported,
} from '../fleet/seen-question.ts'
import type { BoundedQuery } from '../fleet/within-bounds.ts'
import { FetchedDownload, type FetchParts } from './fetch-download.ts'
import type { LineRequest, LineSource } from './line-answer.ts'

/** Some devices reject a longer filter, which has each address three times. */
const ADDRESSES_MAX = 32
/** Progress is for people. */
const PROGRESS_MS = 1_000
/** In the header of a PCAP. */
const LINK_TYPE_OFFSET = 20

/** Dispose it when it is not needed any more: that ends the download, and frees the stream. */
export class CountedDownload implements LineSource<SeenLine> {
  readonly #question: SeenQuestion
  readonly #download: FetchedDownload

  /**
   * Waits for a stream of the device. Fails with seen-unsupported if the question cannot be answered this way,
   * `cause` being why the device cannot search, and like a download.
   */
  static async open(
    { device: { name } }: FleetMember,
    question: SeenQuestion,
    fetch: FetchParts,
    { cause, ...request }: LineRequest & { readonly cause?: unknown },
  ): Promise<CountedDownload> {
    const plan = planMerge(downloadedQuery(name, question, cause), [name])
    const lost = new AbortController()
    const download = await FetchedDownload.open(plan, fetch, {
      id: request.leaseId,
      user: request.user,
      class: 'bulk',
      waitMs: request.waitMs,
      signal: AbortSignal.any([request.signal, lost.signal]),
      options: { onError: 'fail', align: false },
      onPosition: () => undefined,
      onWaited: () => undefined,
      onLost: (reason) => lost.abort(reason),
    })
    return new CountedDownload(question, download)
  }

  private constructor(question: SeenQuestion, download: FetchedDownload) {
    this.#question = question
    this.#download = download
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
    for await (const chunk of body.chunks) {
      counter.add(chunk)
      if (header.length < PCAP_HEADER_BYTES)
        header = Buffer.concat([header, chunk.subarray(0, PCAP_HEADER_BYTES)])
      readBytes += BigInt(chunk.length)
      if (readBytes >= verifyBytesMax) {
        isRead = false
        break
      }
      if (performance.now() - toldMs < PROGRESS_MS) continue
      toldMs = performance.now()
      yield [{ checkedBytes: String(readBytes) }]
    }
    const isWhole = isRead && body.result().perDevice.every(({ status }) => status === 'complete')
    // Others may have the stream.
    await this.#download[Symbol.asyncDispose]()
    const linkType = typeOfWord(header.readUInt32LE(LINK_TYPE_OFFSET))
    yield [
      ...this.#counted(counter, isWhole),
      this.#end({ isWhole, otherLinkTypes: NETWORK_LINK_TYPES.has(linkType) ? [] : [linkType] }),
    ]
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

/** What is asked of the device: the packets of all addresses, untagged and after one or two VLAN tags. */
function downloadedQuery(device: string, question: SeenQuestion, cause: unknown): BoundedQuery {
  const { query, verify, texts, isForced } = question
  const { filterBpf } = query
  if (!verify) throw seenUnsupported(device, 'with Verify=1, its packets are downloaded and counted', cause)
  if (isForced) throw seenUnsupported(device, 'and you may only see packets that pass a filter', cause)
  if (texts.length > ADDRESSES_MAX)
    throw seenUnsupported(
      device,
      `ask for at most ${ADDRESSES_MAX} addresses, which are counted in a download`,
      cause,
    )
  if (filterBpf !== undefined && looksDeeper(filterBpf))
    throw seenUnsupported(
      device,
      'and FilterBPF has a word that changes what follows it; leave it out',
      cause,
    )
  const words = texts.map((text) => `${text.includes('/') ? 'net' : 'host'} ${text}`)
  const anyOf = behindTags(words.join(' or '))
  return { ...query, filterBpf: filterBpf === undefined ? anyOf : `(${filterBpf}) and (${anyOf})` }
}
