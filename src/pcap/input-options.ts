import type { RecordFigures } from '../../native/record-merge.ts'

/**
 * Asked when a stream breaks off (`cause`), or after a pause (undefined). Resolves to the bytes
 * right after what was delivered, without a file header; to undefined when the input shall end here.
 */
export type ResumeInput = (
  cause: unknown,
  delivered: RecordFigures,
) => Promise<AsyncIterator<Uint8Array> | undefined>

export interface InputOptions {
  /** Without it a broken stream is the input's failure. */
  readonly resume?: ResumeInput
  /** Subtracted from every timestamp. */
  readonly alignNs?: bigint
  /** Keep the mark of the last packets, see RecordFigures. */
  readonly marksTail?: boolean
}
