/** Makes new files of an export whose holes are filled: its kept records are merged with what came, window by window. */

import type { BoundedQuery } from '../../fleet/within-bounds.ts'
import type { MergedInput } from '../../pcap/merge.ts'
import { PcapInput } from '../../pcap/pcap-input.ts'
import type { ExportOrder } from '../export-order.ts'
import { pieceCount, resultName } from '../export-pieces.ts'
import type { Checkpoint, ExportWindow, FillBase, KeptPlace } from '../export-record.ts'
import { joinWindow, type Span } from '../files/join-window.ts'
import type { ResultFiles } from '../files/result-files.ts'
import type { ExportParts } from './export-parts.ts'
import { filesOfPiece, keptUpTo, NOTHING_TAKEN } from './fill-export.ts'
import { KeptRecords } from './kept-records.ts'
import { targetOf } from './publish-export.ts'

export interface JoinedWindow {
  readonly window: ExportWindow
  readonly query: BoundedQuery
  /** In the order of the devices; those that have nothing are left out. */
  readonly spans: readonly Span[]
  readonly result: ResultFiles
  readonly signal: AbortSignal
}

export class FilledFiles implements AsyncDisposable {
  readonly #parts: ExportParts
  readonly #order: ExportOrder
  readonly #base: FillBase
  /** Of the files of the present piece; they stay open from one window to the next. */
  #records: KeptRecords | undefined

  constructor(parts: ExportParts, order: ExportOrder, base: FillBase) {
    this.#parts = parts
    this.#order = order
    this.#base = base
  }

  /**
   * Appends a window to the result, with the kept records of its time. Files of a piece for which nothing comes stay as
   * they are. What came of each span, in their order; fails as joinWindow() does.
   */
  async join(
    { window, query, spans, result, signal }: JoinedWindow,
    { kept = NOTHING_TAKEN }: Checkpoint,
  ): Promise<readonly MergedInput[]> {
    const { piece, endsPiece } = window
    const [order, base] = [this.#order, this.#base]
    const keepUpTo = (end: number) => result.keep(keptUpTo(order, base, result.files.length, end))
    if (spans.length === 0 && !result.isFileOpen && endsPiece) keepUpTo(piece + 1)
    if (spans.length === 0 && !(result.isFileOpen && endsPiece)) return []
    if (!result.isFileOpen) keepUpTo(piece)
    const files = { target: targetOf(this.#parts, order), order, files: filesOfPiece(order, base, piece) }
    this.#records ??= await KeptRecords.open(files, kept)
    const records = this.#records.take(endsPiece ? undefined : BigInt(window.endNs))
    const request = {
      order,
      query,
      spans,
      kept: await PcapInput.open('the export', records),
      header: window.header ?? undefined,
      nameOf: (part: number) => resultName(order, piece, part).replace('.pcap', `_r${base.count}.pcap`),
      signal,
    }
    const inputs = await joinWindow(request, result)
    if (endsPiece) await this[Symbol.asyncDispose]()
    return inputs
  }

  /** Where the next window continues in the kept files; for the checkpoint. REQUIRES: the window has been joined. */
  place({ kept = NOTHING_TAKEN }: Checkpoint, { endsPiece }: ExportWindow): { readonly kept: KeptPlace } {
    return { kept: endsPiece ? NOTHING_TAKEN : (this.#records?.place ?? kept) }
  }

  /** The checkpoint with the files of all pieces. REQUIRES: all windows have been joined. */
  withAllFiles(checkpoint: Checkpoint): Checkpoint {
    const { files } = checkpoint
    const kept = keptUpTo(this.#order, this.#base, files.length, pieceCount(this.#order))
    return { ...checkpoint, files: [...files, ...kept] }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#records?.[Symbol.asyncDispose]()
    this.#records = undefined
  }
}
