import { type Chunk, countPackets, type Download, type DownloadTotals } from '../../native/addon.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { PCAP_HEADER_BYTES } from '../../src/shared/pcap/pcap-sizes.ts'
import type { DownloadQuery } from '../../src/shared/query/download/download-query.ts'
import type { FlushWatch } from './flush-watch.ts'
import { addTotals, NO_TOTALS } from './followed-totals.ts'
import { withoutLost } from './lost-segments.ts'
import { onHeld } from './on-held.ts'
import type { PreparedDownload } from './prepare-download.ts'

export interface FollowParts {
  readonly flushes: Pick<FlushWatch, 'next'>
  /** Prepares the download of a part of the range, from what is stored now. */
  readonly prepare: (query: DownloadQuery) => Promise<PreparedDownload>
  readonly open: (prepared: PreparedDownload) => Promise<Download>
}

interface Step {
  readonly prepared: PreparedDownload
  readonly download: Download
}

/**
 * A download that continues with packets as they are recorded (`Follow=1`). It consists of consecutive engine
 * downloads: each one begins where the previous one ended, and returns what has been flushed since. Together they
 * return what a later download of the same range returns: every packet once, by time. It ends when everything before
 * the end of the range is flushed, or when no running capture could add to it. Pulled like a Download, by a single
 * caller.
 */
export class FollowedDownload {
  readonly #parts: FollowParts
  /** The query of the whole range; a name in it is a full one. */
  readonly #query: DownloadQuery
  readonly #closed = new AbortController()
  #current: Download | undefined
  #linkType: number | undefined
  #agedOutBeforeNs: bigint | undefined
  /** TSMax may bring it closer. */
  #endNs: bigint
  /** Everything before this has been covered by a step. */
  #coveredNs: bigint
  #steps = 0
  #mayGrow = true
  #finished: DownloadTotals = NO_TOTALS

  private constructor(query: DownloadQuery, parts: FollowParts) {
    this.#parts = parts
    this.#query = query
    this.#endNs = query.endNs
    this.#coveredNs = query.beginNs
  }

  /** Begins with what is flushed. Fails like prepareDownload, Download.open and FlushWatch. */
  static async open(query: DownloadQuery, parts: FollowParts): Promise<FollowedDownload> {
    const followed = new FollowedDownload(query, parts)
    const { selection, agedOutBeforeNs } = await followed.#openStep(await followed.#flushedNs())
    followed.#linkType = selection.linkType
    followed.#agedOutBeforeNs = agedOutBeforeNs
    return followed
  }

  /** See PreparedDownload; refers to what was stored at the start. */
  get agedOutBeforeNs(): bigint | undefined {
    return this.#agedOutBeforeNs
  }

  /** Like Download.next(). Rejects with aged-out if packets were removed before they could be sent. */
  async next(): Promise<Chunk | undefined> {
    while (this.#current !== undefined) {
      const chunk = await this.#current.next()
      if (chunk !== undefined) return chunk
      this.#endStep(this.#current)
      await this.#nextStep()
    }
    return undefined
  }

  totals(): DownloadTotals {
    return this.#current === undefined ? this.#finished : addTotals(this.#finished, this.#current.totals())
  }

  close(): void {
    this.#closed.abort(new DOMException('the download was closed', 'AbortError'))
    this.#current?.close()
  }

  #endStep(step: Download): void {
    this.#finished = addTotals(this.#finished, step.totals())
    this.#current = undefined
    step.close()
    const { firstNs, truncated } = this.#finished
    const { tsMaxNs } = this.#query
    if (truncated) this.#coveredNs = this.#endNs
    if (tsMaxNs !== undefined && firstNs !== undefined && firstNs + tsMaxNs < this.#endNs) {
      this.#endNs = firstNs + tsMaxNs
    }
  }

  /** Waits until there is more to read; if there is no current step afterwards, the download has ended. */
  async #nextStep(): Promise<void> {
    while (this.#mayGrow && this.#coveredNs < this.#endNs) {
      const flushedNs = await this.#flushedNs()
      if (flushedNs <= this.#coveredNs) continue
      const coveredNs = this.#coveredNs
      this.#checkStep(await this.#openStep(flushedNs), coveredNs)
      await this.#skipHeader()
      return
    }
    await this.#checkNothingMissed()
  }

  /** The time up to which a step may read. */
  async #flushedNs(): Promise<bigint> {
    const state = await this.#parts.flushes.next(this.#closed.signal)
    const { captureName } = this.#query
    const isOver = captureName !== undefined && state.name !== '' && state.name !== captureName
    // By now everything that was recorded is on disk.
    if (!state.isCapturing || isOver) this.#mayGrow = false
    return !this.#mayGrow || state.flushedNs > this.#endNs ? this.#endNs : state.flushedNs
  }

  /** Chooses its files only now: flushed packets may be in a segment, or a capture, that has just been created. */
  async #openStep(flushedNs: bigint): Promise<PreparedDownload> {
    const query = this.#stepQuery(flushedNs)
    const { prepared, download } = await onHeld<PreparedDownload, Step>(
      () => this.#parts.prepare(query),
      async (found) => ({ prepared: found, download: await this.#parts.open(found) }),
      withoutLost,
    )
    this.#current = download
    this.#coveredNs = query.endNs
    this.#steps += 1
    if (this.#closed.signal.aborted) download.close()
    return prepared
  }

  /** The query of the step that ends here, with what the limits leave. */
  #stepQuery(endNs: bigint): DownloadQuery {
    const { maxPackets, maxBytes, tsMaxNs } = this.#query
    const { packets, bytes, firstNs } = this.#finished
    const packetsLeft = maxPackets === undefined ? undefined : maxPackets - packets
    return {
      ...this.#query,
      beginNs: this.#coveredNs,
      endNs: endNs > this.#coveredNs ? endNs : this.#coveredNs,
      tsMaxNs: firstNs === undefined ? tsMaxNs : undefined,
      maxPackets: packetsLeft === 0n ? undefined : packetsLeft,
      // Only a file header: the first matching packet exceeds the limit.
      maxBytes: packetsLeft === 0n ? BigInt(PCAP_HEADER_BYTES) : maxBytes && maxBytes - bytes,
    }
  }

  /** The file has a header already; with compression it is a member or frame of its own. */
  async #skipHeader(): Promise<void> {
    const header = await this.#current?.next()
    if (header === undefined) return
    this.#finished = {
      ...this.#finished,
      outputBytes: this.#finished.outputBytes - BigInt(header.bytes.length),
    }
    header.release()
  }

  #checkStep({ selection, agedOutBeforeNs }: PreparedDownload, beginNs: bigint): void {
    if (agedOutBeforeNs !== undefined && agedOutBeforeNs > beginNs) {
      throw new CapfleetError('aged-out', 'packets were removed before they could be followed')
    }
    if (selection.streams.length === 0) return
    // An empty beginning says nothing about what follows, but its header has been sent.
    if (selection.linkType === this.#linkType || this.#query.format === 'pcapng') return
    throw new CapfleetError('mixed-link-type', 'the capture being followed changed to another link type')
  }

  /** A clock that went back leaves packets before what was sent: an error is better than a silent loss. */
  async #checkNothingMissed(): Promise<void> {
    const { readPackets, corruptBlocks, truncated } = this.#finished
    if (this.#steps < 2 || truncated || corruptBlocks > 0n) return
    const range = { ...this.#query, endNs: this.#endNs }
    const { selection } = await this.#parts.prepare(range)
    const [count] = await countPackets({
      streams: selection.streams,
      boundariesNs: [range.beginNs, range.endNs],
      signal: this.#closed.signal,
    })
    const missed = (count?.packets ?? 0n) - readPackets
    if (missed <= 0n) return
    throw new CapfleetError(
      'store-unavailable',
      `the clock was set back while the range was being followed: ${missed} packets arrived too late to be sent in order; ask again`,
    )
  }
}
