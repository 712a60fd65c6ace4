/** The meaning of the values of `Compression`, on an appliance and in a merge of the gateway. */

/** Must match native/engine/download/compression.h, in its order. */
const [NONE, GZIP, ZSTD] = [0, 1, 2]

/** Codec and level, as in native/engine/download/compression.h. */
export const COMPRESSION_LEVELS = {
  none: { codec: NONE, level: 0 },
  fast: { codec: GZIP, level: 1 },
  '1': { codec: GZIP, level: 1 },
  '2': { codec: GZIP, level: 2 },
  '3': { codec: GZIP, level: 3 },
  '4': { codec: GZIP, level: 4 },
  '5': { codec: GZIP, level: 5 },
  '6': { codec: GZIP, level: 6 },
  '7': { codec: GZIP, level: 7 },
  '8': { codec: GZIP, level: 8 },
  '9': { codec: GZIP, level: 9 },
  // Higher levels take more than twice the time to save one percent, and produce larger output for some traffic.
  best: { codec: GZIP, level: 9 },
  zstd: { codec: ZSTD, level: 3 },
  zstd_fast: { codec: ZSTD, level: -1 },
  zstd_ultra: { codec: ZSTD, level: 22 },
} as const

export type Compression = keyof typeof COMPRESSION_LEVELS
