import type { RecordFigures, RecordMarks } from '../../native/record-merge.ts'

/** What was taken of an input, and how the place is found again. */
export type DeliveredRecords = RecordFigures & RecordMarks

/**
 * Asked when a stream breaks off (`cause`), or after a pause (undefined). Resolves to the bytes
 * right after what was delivered, without a file header; to undefined when the input shall end here.
 */
export type ResumeInput = (
  cause: unknown,
  delivered: DeliveredRecords,
) => Promise<AsyncIterator<Uint8Array> | undefined>

export interface InputOptions {
  /** Without it a broken stream is the input's failure. */
  readonly resume?: ResumeInput
  /** Subtracted from every timestamp. */
  readonly alignNs?: bigint
  /** Mark the last packets also while they are in order, see RecordMarks. */
  readonly marksTail?: boolean
}
