/** The meaning of the values of `DedupBy`, on an appliance and in a merge of the gateway. */

/** Must match DuplicateKey in native/engine/merge/duplicate_window.h. */
export const DEDUP_KEY_NUMBERS = { payload: 0, ip: 1 } as const
export type DedupBy = keyof typeof DEDUP_KEY_NUMBERS
