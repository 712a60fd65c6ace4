/**
 * How many bytes of an answer the gateway takes, by what it asked. All are far above what the API needs: the
 * version is three short texts, a status some 12 KiB, an estimate 200 bytes. Lists have settings of their
 * own (control.listBytesMax, control.listEntriesMax).
 */
export const ANSWER_BYTES_MAX = {
  clock: 1_024,
  version: 4_096,
  status: 256 * 1_024,
  estimate: 16 * 1_024,
  /** Any call to several devices; those that read the status are the longest. */
  control: 1_024 * 1_024,
} as const
