/**
 * One download from its first byte to its verified end, over as many requests as necessary: a body that breaks off is
 * continued after the last complete packet (in pcapng: block), and only what the gateway's receipts confirm is called complete.
 */
import { createHash, type Hash } from 'node:crypto'
import { CapfleetError } from '../../../shared/base/error.ts'
import { type Encoding, isCompressed, PARTIAL_ELEMENTS } from '../../../shared/query/download/query-values.ts'
import { ClientFailure } from '../../client-failure.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import type { Received } from '../../transport.ts'
import type { Retries } from '../common/retries.ts'
import type { DownloadOutput } from '../output/output-file.ts'
import { brokenOff, encodingOf, notesOf } from './download-answer.ts'
import type { AskedDownload, DownloadJournal } from './download-journal.ts'
import { cancellation, type Receipt, type ReceivedBody, verifiedReceipt } from './verified-receipt.ts'
import { type FileForm, WholeRecords } from './whole-records.ts'

/** Receives the progress of the session. */
export interface DownloadWatch {
  /** A request is being sent and may have to wait for its streams. Dispose the result when the wait is over. */
  asking(): Disposable
  /** Bytes of the body that are stored so far. */
  progress(bytes: number): void
  /** A sentence for the user. */
  say(text: string): void
}

export interface SessionOptions {
  readonly client: GatewayClient
  readonly asked: AskedDownload
  readonly output: DownloadOutput
  readonly journal: DownloadJournal
  readonly watch: DownloadWatch
  readonly signal: AbortSignal
  /** How long to wait in the queue; undefined: the gateway's default. */
  readonly waitS: number | undefined
  readonly retries: Retries
}

export interface DownloadEnd {
  /** The gateway's receipt for the last request. */
  readonly receipt: Receipt
  /** SHA-256 of the whole body, over all requests. */
  readonly sha256: string
  readonly bytes: number
}

/** The gateway's maximum for one request; a longer wait uses several. */
const WAIT_MAX_S = 600
/** If receipts disappear repeatedly, the gateway is not usable. */
const NEW_BEGINS_MAX = 3

export class DownloadSession {
  readonly #options: SessionOptions
  /** Covers all bytes that the output has. */
  #hash: Hash = createHash('sha256')
  /** The request that the next one continues. */
  #requestId: string | undefined
  #encoding: Encoding = 'none'
  /** Of the file, which its rest does not show. */
  #form: FileForm | undefined
  /** Whether an answer has arrived: from then on failures are retried. */
  #hasBegun = false
  #newBegins = 0
  #waitedMs = 0

  constructor(options: SessionOptions) {
    this.#options = options
  }

  /** Fails with a ClientFailure, or the signal's reason. What is stored stays, for another session. */
  async run(): Promise<DownloadEnd> {
    const { output } = this.#options
    try {
      await this.#takeOver()
      for (;;) {
        const end = await this.#attempt()
        if (end !== undefined) return end
      }
    } catch (error) {
      await output.fail(PARTIAL_ELEMENTS[this.#encoding]).catch(() => undefined)
      // Even if that fails, the stored data is still there while the machine runs.
      await this.#settle().catch(() => undefined)
      throw error
    }
  }

  /** Makes the stored data durable. */
  async #settle(): Promise<void> {
    const { output, journal } = this.#options
    if (this.#requestId === undefined || isCompressed(this.#encoding)) return
    await output.sync()
    await journal.save({ requestId: this.#requestId, isCompressed: false, syncedBytes: output.bytes })
  }

  /** Continues with what an earlier session has stored. */
  async #takeOver(): Promise<void> {
    const { output, journal, watch } = this.#options
    const { entry, isOfEarlierBoot } = journal
    if (entry === undefined || entry.isCompressed) return await output.truncate(0)
    if (isOfEarlierBoot && output.bytes > entry.syncedBytes) await output.truncate(entry.syncedBytes)
    // A killed process may have left an incomplete packet.
    const bytes = await this.#readKept()
    await output.truncate(bytes)
    if (bytes === 0) this.#hash = createHash('sha256')
    this.#requestId = entry.requestId
    this.#hasBegun = bytes > 0
    if (bytes > 0)
      watch.say(`resuming after the ${bytes} bytes of request ${entry.requestId} that are already here`)
  }

  /** The length of the complete packets of the part, which are hashed; 0 if it is not a capture file. */
  async #readKept(): Promise<number> {
    const records = new WholeRecords()
    let bytes = 0
    try {
      for await (const chunk of this.#options.output.kept()) {
        for (const piece of records.take(chunk)) {
          this.#hash.update(piece)
          bytes += piece.length
        }
      }
    } catch (error) {
      if (!(error instanceof CapfleetError)) throw error
      this.#options.watch.say('the partial file is damaged: starting over')
      return 0
    }
    this.#form = records.form
    return bytes
  }

  /** Returns undefined if a retry is worthwhile and now due. */
  async #attempt(): Promise<DownloadEnd | undefined> {
    const { output } = this.#options
    const before = output.bytes
    try {
      return await this.#ask()
    } catch (error) {
      if (!(error instanceof ClientFailure)) throw error
      if (output.bytes > before) this.#options.retries.progressed()
      if (await this.#beginsAnew(error)) return undefined
      await this.#pause(error)
      return undefined
    }
  }

  /** The gateway keeps receipts for a day, and cannot continue every download that has one. */
  async #beginsAnew({ code, facts, message }: ClientFailure): Promise<boolean> {
    const isForgotten = code === 'unknown-request'
    const cannotGoOn = isForgotten || (code === 'bad-parameter' && facts.param === 'Resume')
    if (this.#requestId === undefined || !cannotGoOn || this.#newBegins >= NEW_BEGINS_MAX) return false
    this.#newBegins += 1
    const { watch, output } = this.#options
    const why = isForgotten ? 'the gateway no longer has a receipt for the partial file' : message
    if (output.bytes > 0) watch.say(`${why}: starting over`)
    await this.#reset()
    return true
  }

  async #reset(): Promise<void> {
    await this.#options.output.truncate(0)
    this.#hash = createHash('sha256')
    this.#requestId = undefined
  }

  /** Waits before the next attempt; throws the failure if none is worthwhile. */
  async #pause(failure: ClientFailure): Promise<void> {
    const isTimeout = failure.code === 'queue-timeout'
    if (isTimeout && this.#waitLeftS() > 0) return
    const { retryAfterS = 0 } = failure.facts
    // Before the first answer, a device that is down or a wrong address is reported at once.
    if (!this.#hasBegun && (isTimeout || retryAfterS === 0)) throw failure
    await this.#options.retries.pause(failure)
  }

  async #ask(): Promise<DownloadEnd> {
    const { client, asked, output, journal, watch, signal } = this.#options
    const resumes = this.#requestId !== undefined
    // A compressor need not produce the same bytes twice.
    if (!resumes && output.bytes > 0) await this.#reset()
    using answer = await this.#open(() =>
      client.open(asked.path, { query: [...asked.query, ...this.#ownPairs()], signal }),
    )
    const requestId = answer.headers.get('capfleet-request-id') ?? ''
    const encoding = encodingOf(answer)
    this.#hasBegun = true
    this.#encoding = encoding
    for (const note of notesOf(answer)) watch.say(note)
    // The next session needs it even before there is anything to continue.
    const syncedBytes = journal.entry?.syncedBytes ?? 0
    await journal.save({ requestId, isCompressed: isCompressed(encoding), syncedBytes })
    if (!isCompressed(encoding)) this.#requestId = requestId
    const received = await this.#receive(answer, resumes && output.bytes > 0).catch(
      async (error: unknown) => {
        throw (await cancellation(client, requestId, signal)) ?? error
      },
    )
    const receipt = await verifiedReceipt(client, { requestId, received, signal })
    await output.finish()
    await journal.remove()
    return { receipt, sha256: this.#hash.copy().digest('hex'), bytes: output.bytes }
  }

  /** Measures how long the request waits, and reports it. */
  async #open(open: () => Promise<Received>): Promise<Received> {
    using _telling = this.#options.watch.asking()
    const askedMs = performance.now()
    try {
      return await open()
    } finally {
      this.#waitedMs += performance.now() - askedMs
    }
  }

  #ownPairs(): QueryPairs {
    const { waitS, output } = this.#options
    return [
      ['Digest', 'sha256'],
      ...(waitS === undefined ? [] : [['Wait', String(Math.min(WAIT_MAX_S, this.#waitLeftS()))] as const]),
      ...(this.#requestId === undefined
        ? []
        : ([
            ['Resume', this.#requestId],
            ['Offset', String(output.bytes)],
          ] as const)),
    ]
  }

  #waitLeftS(): number {
    return Math.max(0, Math.round((this.#options.waitS ?? 0) - this.#waitedMs / 1_000))
  }

  /** Stores the body as it arrives. Fails if it does not reach its end. */
  async #receive({ body }: Received, isRest: boolean): Promise<ReceivedBody> {
    const { output, watch } = this.#options
    const records = isCompressed(this.#encoding)
      ? undefined
      : new WholeRecords(isRest ? this.#form : undefined)
    const hash = isRest ? createHash('sha256') : this.#hash
    let bytes = 0
    for await (const chunk of body) {
      bytes += chunk.length
      if (isRest) hash.update(chunk)
      const pieces = records?.take(chunk) ?? [chunk]
      this.#form = records?.form
      await output.write(pieces)
      for (const piece of pieces) this.#hash.update(piece)
      watch.progress(output.bytes)
    }
    if (records?.isWhole === false) throw brokenOff('the response ended inside a packet')
    return { bytes, sha256: hash.copy().digest('hex') }
  }
}
