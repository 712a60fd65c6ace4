/** The meaning of the values of `DedupBy`, on an appliance and in a merge of the gateway. */
import type { DedupBy } from '../src/shared/query/query-values.ts'

/** Must match DuplicateKey in native/engine/merge/duplicate_window.h. */
export const DEDUP_KEYS: Readonly<Record<DedupBy, number>> = { payload: 0, ip: 1 }
