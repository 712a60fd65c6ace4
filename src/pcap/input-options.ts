import type { DeliveredRecords } from './delivered-records.ts'
import type { MergeArena } from './merge-arena.ts'

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
  /** Where the input keeps what it has at hand; default: memory of its own. */
  readonly arena?: MergeArena
  /** Subtracted from every timestamp. */
  readonly alignNs?: bigint
  /** See DeliveredRecords. */
  readonly marksTail?: boolean
}
