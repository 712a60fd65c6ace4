/**
 * The job that writes an export: queues its windows one ahead of the one being joined, joins their spans into the
 * files, and publishes these. After each window there is a checkpoint, which only the writer of the export may set: a
 * worker that was considered dead and comes back changes nothing.
 */
import { randomUUID } from 'node:crypto'
import type { SpanOf, WritingJob } from '../../gateway/export/export-jobs.ts'
import { exportLeaseId } from '../../gateway/export/export-lease.ts'
import { type ExportOrder, orderedQuery } from '../../gateway/export/export-order.ts'
import { type ExportParts, Later } from '../../gateway/export/export-parts.ts'
import {
  firstCheckpoint,
  isAllOrdered,
  offsetOf,
  orderWindow,
  pieceCount,
  resultName,
} from '../../gateway/export/export-pieces.ts'
import {
  type Checkpoint,
  type ExportRecord,
  type ExportWindow,
  type Hole,
  LIVE_STATES,
  type MadeFile,
  type ReportedFailure,
} from '../../gateway/export/export-record.ts'
import type { ChangeOptions } from '../../gateway/export/export-store.ts'
import { firstFilling, orderFill } from '../../gateway/export/fill-export.ts'
import type { ExportChange } from '../../gateway/export/record-fields.ts'
import type { SpanOutcome } from '../../gateway/export/spool.ts'
import type { MergedInput } from '../../gateway/pcap/merge.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import { MAX_CAPTURED_LENGTH } from '../../shared/pcap/pcap-sizes.ts'
import { joinBlocks } from '../files/join-blocks.ts'
import { joinWindow, type Span } from '../files/join-window.ts'
import { ResultFiles, removeReplaced } from '../files/result-files.ts'
import { tallied } from '../files/tally.ts'
import { failExport, pauseExport, reported } from './fail-export.ts'
import { windowQuery } from './fetch-span.ts'
import { FilledFiles, type JoinedWindow } from './filled-files.ts'
import { JobWatch, NOT_WANTED, TAKEN_OVER } from './job-watch.ts'
import { measureNext } from './measure-next.ts'
import { makeWorkFolder, publishExport } from './publish-export.ts'
import type { RunningJob } from './run-span.ts'

/** How a writer's turn ends: nothing is left to do, or it continues when its spans have been fetched. */
export type WriterTurn = 'done' | 'waits-for-spans'

/** Does what can be done now. Throws Later, or internal errors. */
export async function runExport(
  parts: ExportParts,
  job: WritingJob,
  running: RunningJob,
): Promise<WriterTurn> {
  const record = await parts.store.find(job.data.exportId)
  if (record === undefined || !LIVE_STATES.includes(record.state)) return 'done'
  const writer = randomUUID()
  const claimed = await parts.store.change(
    record.order,
    { writer, state: 'running', startedMs: record.startedMs ?? parts.clock.nowMs(), error: null },
    { states: LIVE_STATES },
  )
  if (!claimed.isChanged) return 'done'
  const fresh = await parts.store.find(record.order.id)
  if (fresh === undefined) return 'done'
  await using turn = new Turn(parts, job, fresh, {
    writer,
    isHandedOver: claimed.writer === '',
    ...running,
  })
  return await turn.run()
}

/** The spans of a window that have come. */
type Came = readonly { readonly device: string; readonly outcome: SpanOutcome | undefined }[]

interface TurnOptions extends RunningJob {
  readonly writer: string
  readonly isHandedOver: boolean
}

class Turn implements AsyncDisposable {
  readonly #parts: ExportParts
  readonly #job: WritingJob
  readonly #order: ExportOrder
  readonly #record: ExportRecord
  readonly #options: TurnOptions
  readonly #watch: JobWatch
  #checkpoint: Checkpoint
  #result: ResultFiles | undefined
  /** Set if holes of files are being filled. */
  readonly #filling: FilledFiles | undefined
  /** Whether no other writer can still be writing to the files of the checkpoint. */
  #isOurs: boolean

  constructor(parts: ExportParts, job: WritingJob, record: ExportRecord, options: TurnOptions) {
    this.#parts = parts
    this.#job = job
    this.#order = record.order
    this.#record = record
    this.#options = options
    const { checkpoint, base } = record
    // A checkpoint of an earlier version covers all holes in one window each.
    const isUsable = base === undefined || checkpoint?.kept !== undefined
    this.#checkpoint = (isUsable ? checkpoint : undefined) ?? this.#firstCheckpoint
    this.#isOurs = options.isHandedOver || this.#checkpoint.openFile === null
    this.#filling = base && new FilledFiles(parts, record, base)
    const { store } = parts
    const { writer, stopping } = options
    this.#watch = new JobWatch({ store, order: record.order, stopping, writer, progress: () => ({}) })
  }

  get #firstCheckpoint(): Checkpoint {
    const { order, base } = this.#record
    return base === undefined ? firstCheckpoint(order) : firstFilling(order, base)
  }

  async run(): Promise<WriterTurn> {
    try {
      await this.#storeAgain()
      return await this.#goOn()
    } catch (error) {
      const { reason } = this.#watch.signal
      if ([error, reason].includes(TAKEN_OVER)) return 'done'
      if ([error, reason].includes(NOT_WANTED)) return await this.#leave()
      const isFinal = error instanceof CapfleetError && !NOT_FINAL.has(error.code)
      if (isFinal && !this.#options.stopping.aborted) return await this.#fail(reported(error))
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') await this.#beginAnew()
      await this.#handOver()
      if (this.#options.stopping.aborted) throw new Later(0)
      if (!(error instanceof CapfleetError)) throw error
      if (WAITS_FOR_STORE.has(error.code)) return await pauseExport(this.#parts, this.#order, error)
      throw error
    }
  }

  /** Stores data of an earlier version in the present form. */
  async #storeAgain(): Promise<void> {
    const { former, base, published } = this.#record
    if (former === undefined) return
    const { made, kept } = former
    await this.#keep(
      {
        checkpoint: this.#checkpoint,
        made: { from: 0, files: made.slice(0, this.#checkpoint.fileCount) },
        published,
        ...(base === undefined ? {} : { base, kept }),
      },
      'dropped',
    )
  }

  /** A file is missing: Redis was rolled back to a state that names it, by its last second or to a backup. */
  async #beginAnew(): Promise<void> {
    this.#parts.log.warn('export.begun-anew', { exportId: this.#order.id })
    try {
      await this.#keep({ checkpoint: this.#firstCheckpoint, published: 0 }, 'dropped')
      await this.#parts.spool.remove(this.#order.id)
    } catch {
      // Another worker handles it, or this one when it gets the job again.
    }
  }

  /** Removes what was written without the knowledge of whoever ended the export. */
  async #leave(): Promise<WriterTurn> {
    await this.#result?.[Symbol.asyncDispose]()
    await this.#parts.jobs.clean(this.#order.id)
    return 'done'
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#watch[Symbol.asyncDispose]()
    await this.#result?.[Symbol.asyncDispose]()
    await this.#filling?.[Symbol.asyncDispose]()
  }

  async #goOn(): Promise<WriterTurn> {
    for (;;) {
      await this.#orderAhead()
      const [first] = this.#checkpoint.ordered
      if (first === undefined) return await this.#publish()
      const outcomes = await this.#outcomes(first)
      const fatal = outcomes?.find((outcome) => outcome.fatal !== null)?.fatal
      if (fatal !== null && fatal !== undefined) return await this.#fail(fatal)
      if (outcomes === undefined) return await this.#waitForSpans()
      await this.#join(first, outcomes)
    }
  }

  /** One window is fetched while the previous one is joined. */
  async #orderAhead(): Promise<void> {
    while (this.#checkpoint.ordered.length < WINDOWS_AHEAD && !isAllOrdered(this.#order, this.#checkpoint)) {
      if (this.#checkpoint.measured === null && !(await this.#measure())) return
      const { nextIndex } = this.#checkpoint
      await this.#keep({ checkpoint: this.#withNextWindow(), stage: 'fetching' })
      const window = this.#checkpoint.ordered.find(({ index }) => index === nextIndex)
      if (window !== undefined) await this.#fetch(window)
    }
  }

  #withNextWindow(): Checkpoint {
    const { base } = this.#record
    return base === undefined
      ? orderWindow(this.#order, this.#checkpoint)
      : orderFill(this.#order, base, this.#checkpoint)
  }

  /**
   * Whether the next piece has been measured; if not, its time is not over, and other pieces can be joined meanwhile.
   */
  async #measure(): Promise<boolean> {
    await this.#keep({ stage: this.#checkpoint.nextIndex === 0 ? 'preparing' : 'fetching' })
    const found = await measureNext(this.#parts, {
      record: this.#record,
      checkpoint: this.#checkpoint,
      windowsAhead: WINDOWS_AHEAD,
      id: exportLeaseId(this.#order.id, this.#options.attempt),
      signal: this.#watch.signal,
    })
    if (found === undefined) return false
    await this.#keep({ checkpoint: { ...this.#checkpoint, ...found }, waiting: null })
    return true
  }

  #spansOf(window: ExportWindow): readonly SpanOf[] {
    return this.#order.plan.devices
      .map((device, index) => ({ device, index }))
      .filter(({ device }) => !window.leftOut.includes(device))
  }

  async #fetch(window: ExportWindow): Promise<void> {
    await this.#parts.jobs.fetchWindow(this.#job, window, this.#spansOf(window))
  }

  /** The outcomes of a window's spans; undefined if some are still missing and none is fatal. */
  async #outcomes(window: ExportWindow): Promise<readonly SpanOutcome[] | undefined> {
    const { spool } = this.#parts
    const outcomes = await Promise.all(
      this.#spansOf(window).map(({ index }) => spool.span(this.#order.id, window, index).outcome()),
    )
    const told = outcomes.filter((outcome) => outcome !== undefined)
    const isFatal = told.some(({ fatal }) => fatal !== null)
    return told.length === outcomes.length || isFatal ? told : undefined
  }

  /** BullMQ makes the job wait until its children have ended; lost children are recreated first. */
  async #waitForSpans(): Promise<WriterTurn> {
    // A writer that was suspended for long may wait for windows that another one has joined.
    await this.#keep({})
    for (const window of this.#checkpoint.ordered) await this.#fetch(window)
    await this.#handOver()
    return 'waits-for-spans'
  }

  async #join(window: ExportWindow, outcomes: readonly SpanOutcome[]): Promise<void> {
    this.#options.onWork()
    const { spool } = this.#parts
    const order = this.#order
    const query = windowQuery(order, window)
    const came = this.#spansOf(window).map((span, at) => ({ ...span, outcome: outcomes[at] }))
    const spans = came.flatMap(({ device, index, outcome }): Span[] => {
      const file = outcome?.file ?? null
      if (file === null) return []
      const path = spool.span(order.id, window, index).pathOf(file)
      return [{ device, path, alignNs: offsetOf(this.#checkpoint, device) }]
    })
    const result = await this.#openResult(query)
    const before = this.#checkpoint
    const blocks = query.format === 'pcapng' ? this.#blocksOf(window, came) : undefined
    const joined = { window, query, spans, result, blocks, signal: this.#watch.signal }
    const inputs = await (this.#filling?.join(joined, before) ?? this.#append(joined, came))
    if (window.endsPiece) await result.endFile()
    await result.flush()
    const { fileCount, openFile } = result
    const made = result.takeMade()
    const files = openFile === null ? made : [...made, openFile]
    const bytes = bytesOf(files) - Number(before.openFile?.bytes ?? 0)
    await this.#keep({
      checkpoint: {
        ...before,
        ordered: before.ordered.slice(1),
        fileCount,
        openFile,
        writtenBytes: String(Number(before.writtenBytes) + bytes),
        ...this.#filling?.place(before, window),
        ...tallied(before, { window, inputs, came }),
      },
      made: { from: before.fileCount, files: made },
    })
    this.#isOurs = true
    if (this.#filling === undefined) await this.#parts.quotas.add(order.id, order.quotas ?? [], bytes)
    this.#parts.outcomes.written(inputs.reduce((sum, { bytes }) => sum + bytes, 0))
    for (const { device } of spans) await this.#parts.store.change(order, { fetching: { device, bytes: 0 } })
    await removeReplaced(before, files)
    await spool.removeWindow(order.id, window)
  }

  async #append(
    { window, query, spans, result, blocks, signal }: JoinedWindow,
    came: Came,
  ): Promise<readonly MergedInput[]> {
    const isNothing = spans.length === 0 && window.header === null
    if (isNothing && pieceCount(this.#order) === 1)
      throw nothingCame(came.flatMap(({ outcome }) => outcome?.holes ?? []))
    const order = this.#order
    const nameOf = (part: number) => resultName(order, window.piece, part)
    if (blocks !== undefined)
      return await joinBlocks({ order, window, spans, nameOf, signal, ...blocks }, result)
    const header = window.header ?? (isNothing ? HEADER_OF_NOTHING : undefined)
    return await joinWindow({ order, query, spans, header, nameOf, signal }, result)
  }

  /** What is said in a file of pcapng beside the packets of the window. */
  #blocksOf(window: ExportWindow, came: Came): JoinedWindow['blocks'] {
    const { fleet } = this.#parts
    const [nextNs] = came.flatMap(({ outcome }) => outcome?.nextNs ?? [])
    return {
      devices: tallied(this.#checkpoint, { window, inputs: [], came }).devices,
      siteOf: (device) => fleet.find(device)?.device.site,
      nextNs: nextNs === undefined ? undefined : BigInt(nextNs),
    }
  }

  async #openResult(query: { readonly compression: Parameters<typeof ResultFiles.open>[0]['compression'] }) {
    const { partBytes } = this.#order
    this.#result ??= await ResultFiles.open({
      folder: await makeWorkFolder(this.#parts, this.#order),
      compression: query.compression,
      partBytes: partBytes === null ? undefined : Number(partBytes),
      signal: this.#watch.signal,
      fileCount: this.#checkpoint.fileCount,
      openFile: this.#checkpoint.openFile,
      isHandedOver: this.#isOurs,
    })
    return this.#result
  }

  async #publish(): Promise<WriterTurn> {
    this.#options.onWork()
    const gone = goneFor(this.#order, this.#checkpoint)
    if (gone !== undefined) return await this.#fail(gone)
    await this.#keep({ stage: 'publishing', ...(await this.#filling?.lastFiles(this.#checkpoint)) })
    await publishExport(this.#parts, {
      record: this.#record,
      checkpoint: this.#checkpoint,
      signal: this.#watch.signal,
      keep: (change, files) => this.#keep(change, files),
    })
    await this.#parts.jobs.clean(this.#order.id)
    return 'done'
  }

  /** Changes the export while this is its writer. Throws TAKEN_OVER or NOT_WANTED. */
  async #keep(change: ExportChange, files?: ChangeOptions['files']): Promise<void> {
    const { writer } = this.#options
    const guard = { writer, states: LIVE_STATES, ...(files === undefined ? {} : { files }) }
    const { isChanged, state } = await this.#parts.store.change(this.#order, change, guard)
    if (!isChanged) throw state !== undefined && LIVE_STATES.includes(state) ? TAKEN_OVER : NOT_WANTED
    if (change.checkpoint !== undefined) this.#checkpoint = change.checkpoint
  }

  /** The next turn may continue the same files, unless they belong to a writer that was not seen to stop. */
  async #handOver(): Promise<void> {
    await this.#result?.[Symbol.asyncDispose]()
    this.#result = undefined
    if (!this.#isOurs) return
    const { writer } = this.#options
    await this.#parts.store.change(this.#order, { writer: '' }, { writer }).catch(() => undefined)
  }

  async #fail(error: ReportedFailure): Promise<WriterTurn> {
    await failExport(this.#parts, this.#record, error, this.#options.writer)
    return 'done'
  }
}

function bytesOf(files: readonly MadeFile[]): number {
  return files.reduce((sum, { bytes }) => sum + Number(bytes), 0)
}

/** The export continues once the target, or the audit, is writable. */
const WAITS_FOR_STORE: ReadonlySet<string> = new Set([
  'export-store-full',
  'export-target-unavailable',
  'audit-unavailable',
])

/** How many windows are fetched before they are joined: the spool needs that much space. */
const WINDOWS_AHEAD = 2

/** Errors that say nothing about the order. */
const NOT_FINAL: ReadonlySet<string> = new Set([
  'export-store-full',
  'export-target-unavailable',
  'audit-unavailable',
  'scheduler-unavailable',
  'internal-error',
])

/** For the file of a part of which no device has anything any more, while other parts have packets. */
const HEADER_OF_NOTHING = { linkType: 1, snaplen: MAX_CAPTURED_LENGTH, nanoseconds: true }

/** Why there is no file: no device returned anything, or one whose packets are permanently lost (OnMissing=fail). */
function goneFor(order: ExportOrder, { devices }: Checkpoint): ReportedFailure | undefined {
  const { beginNs, endNs } = orderedQuery(order)
  const isAll = ({ fromNs, toNs, error }: Hole) =>
    error.code !== 'device-unverified' && BigInt(fromNs) <= beginNs && BigInt(toNs) >= endNs
  // For a damaged device a hole only says that some of it is missing.
  const silent = devices.filter(({ packets }) => BigInt(packets) === 0n)
  const empty = silent.flatMap(({ holes }) => holes.find(isAll) ?? [])
  if (empty.length === devices.length) return empty[0]?.error
  return order.onMissing === 'fail' ? empty.find(({ final }) => final)?.error : undefined
}

function nothingCame(holes: SpanOutcome['holes']): CapfleetError {
  const [first] = holes
  const { code, detail } = first?.error ?? { code: 'device-unreachable', detail: 'no device could be read' }
  return new CapfleetError(code as 'device-unreachable', detail)
}
