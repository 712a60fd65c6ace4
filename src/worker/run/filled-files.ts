/**
 * Creates new files of an export whose holes are being filled: its existing records are merged with what was fetched,
 * window by window.
 */

import type { ExportOrder } from '../../gateway/export/export-order.ts'
import type { ExportParts } from '../../gateway/export/export-parts.ts'
import { pieceCount, resultName } from '../../gateway/export/export-pieces.ts'
import {
  type Checkpoint,
  type ExportedFile,
  type ExportRecord,
  type ExportWindow,
  type FillBase,
  type KeptPlace,
  keptCount,
} from '../../gateway/export/export-record.ts'
import { filesOfPiece, keptUpTo, NOTHING_TAKEN } from '../../gateway/export/fill-export.ts'
import { targetOf } from '../../gateway/export/order-target.ts'
import type { ExportChange } from '../../gateway/export/record-fields.ts'
import type { BoundedQuery } from '../../gateway/fleet/plan/within-bounds.ts'
import type { FileInterfaces } from '../../gateway/pcap/file-interfaces.ts'
import type { MergedInput } from '../../gateway/pcap/merge.ts'
import { PcapInput } from '../../gateway/pcap/pcap-input.ts'
import { type JoinBlocksRequest, joinBlocks } from '../files/join-blocks.ts'
import { joinWindow, type Span } from '../files/join-window.ts'
import type { ResultFiles } from '../files/result-files.ts'
import { KeptBlocks } from './kept-blocks.ts'
import type { KeptFiles } from './kept-bytes.ts'
import { KeptRecords } from './kept-records.ts'

export interface JoinedWindow {
  readonly window: ExportWindow
  readonly query: BoundedQuery
  /** The spans in the order of the devices; devices without packets are left out. */
  readonly spans: readonly Span[]
  readonly result: ResultFiles
  /** Set for pcapng. */
  readonly blocks?: Pick<JoinBlocksRequest, 'devices' | 'siteOf' | 'nextNs'> | undefined
  readonly signal: AbortSignal
}

export class FilledFiles implements AsyncDisposable {
  readonly #parts: ExportParts
  readonly #record: ExportRecord
  readonly #order: ExportOrder
  readonly #base: FillBase
  /** Of the files of the current piece; they stay open from one window to the next. */
  #records: KeptRecords | KeptBlocks | undefined

  constructor(parts: ExportParts, record: ExportRecord, base: FillBase) {
    this.#parts = parts
    this.#record = record
    this.#order = record.order
    this.#base = base
  }

  /**
   * Appends a window to the result, with the existing records of its time. Files of a piece for which nothing was
   * fetched stay unchanged. Returns the outcome of each span, in order; fails like joinWindow().
   */
  async join(
    { window, query, spans, result, blocks, signal }: JoinedWindow,
    { kept = NOTHING_TAKEN }: Checkpoint,
  ): Promise<readonly MergedInput[]> {
    const { piece, endsPiece } = window
    const [order, base] = [this.#order, this.#base]
    const isOpen = result.openFile !== null
    if (spans.length === 0 && !isOpen && endsPiece) await this.#keepUpTo(result, piece + 1)
    if (spans.length === 0 && !(isOpen && endsPiece)) return []
    if (!isOpen) await this.#keepUpTo(result, piece)
    const files = keptOf(this.#parts, this.#record, piece)
    const untilNs = endsPiece ? undefined : BigInt(window.endNs)
    const nameOf = (part: number) => resultName(order, piece, part).replace('.pcap', `_r${base.count}.pcap`)
    const joined = { order, spans, nameOf, signal }
    const join = async () => {
      if (blocks !== undefined) {
        const records = this.#records instanceof KeptBlocks ? this.#records : new KeptBlocks(files, kept)
        this.#records = records
        const taken = (interfaces: FileInterfaces) => records.take(untilNs, interfaces)
        return await joinBlocks({ ...joined, ...blocks, window, kept: taken }, result)
      }
      const records =
        this.#records instanceof KeptRecords ? this.#records : await KeptRecords.open(files, kept)
      this.#records = records
      const header = window.header ?? undefined
      const input = await PcapInput.open('the export', records.take(untilNs))
      return await joinWindow({ ...joined, query, kept: input, header }, result)
    }
    const inputs = await join()
    if (endsPiece) await this[Symbol.asyncDispose]()
    return inputs
  }

  /**
   * Where the next window continues in the existing files, for the checkpoint. REQUIRES: the window has been joined.
   */
  place({ kept = NOTHING_TAKEN }: Checkpoint, { endsPiece }: ExportWindow): { readonly kept: KeptPlace } {
    return { kept: endsPiece ? NOTHING_TAKEN : (this.#records?.place ?? kept) }
  }

  /** The existing files that follow the new ones. REQUIRES: all windows have been joined. */
  async lastFiles(checkpoint: Checkpoint): Promise<Pick<ExportChange, 'checkpoint' | 'made'>> {
    const { fileCount, writtenBytes } = checkpoint
    const files = await this.#keptUpTo(fileCount, pieceCount(this.#order))
    const bytes = files.reduce((sum, file) => sum + BigInt(file.bytes), BigInt(writtenBytes))
    const whole = { ...checkpoint, fileCount: fileCount + files.length, writtenBytes: String(bytes) }
    return { checkpoint: whole, made: { from: fileCount, files } }
  }

  async #keepUpTo(result: ResultFiles, end: number): Promise<void> {
    result.keep(await this.#keptUpTo(result.fileCount, end))
  }

  async #keptUpTo(made: number, end: number): Promise<readonly ExportedFile[]> {
    const kept = keptUpTo(this.#order, this.#base, made, end)
    return await this.#parts.store.keptFiles(this.#record, kept.from, kept.end)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#records?.[Symbol.asyncDispose]()
    this.#records = undefined
  }
}

/** The current files of a piece that is being filled. */
export function keptOf(
  { store, targets }: Pick<ExportParts, 'store' | 'targets'>,
  record: ExportRecord,
  piece: number,
): KeptFiles {
  const { order } = record
  const { from, end } = filesOfPiece(order, keptCount(record), piece)
  return {
    target: targetOf({ targets }, order),
    order,
    fileAt: async (index) => {
      const number = from + index
      const [file] = await store.keptFiles(record, number, Math.min(number + 1, end))
      return file
    },
  }
}
