/** The values of StreamView: how /stream/ssize and /stream/stime split a capture. */

const MEGABYTE = 1_000_000n
const GIGABYTE = 1_000n * MEGABYTE
const SECOND_NS = 1_000_000_000n
const MINUTE_NS = 60n * SECOND_NS
const HOUR_NS = 60n * MINUTE_NS

/** Bytes per part; decimal units. */
export const SIZE_VIEWS = {
  split_10MB: 10n * MEGABYTE,
  split_100MB: 100n * MEGABYTE,
  split_250MB: 250n * MEGABYTE,
  split_1GB: GIGABYTE,
  split_2GB: 2n * GIGABYTE,
  split_5GB: 5n * GIGABYTE,
  split_10GB: 10n * GIGABYTE,
  split_100GB: 100n * GIGABYTE,
  split_1TB: 1_000n * GIGABYTE,
} as const satisfies Record<string, bigint>

/** Nanoseconds per part. */
export const TIME_VIEWS = {
  split_1sec: SECOND_NS,
  split_10sec: 10n * SECOND_NS,
  split_1min: MINUTE_NS,
  split_10min: 10n * MINUTE_NS,
  split_15min: 15n * MINUTE_NS,
  split_1hour: HOUR_NS,
  split_2hour: 2n * HOUR_NS,
  split_4hour: 4n * HOUR_NS,
  split_6hour: 6n * HOUR_NS,
  split_8hour: 8n * HOUR_NS,
  split_12hour: 12n * HOUR_NS,
} as const satisfies Record<string, bigint>

export type SizeView = keyof typeof SIZE_VIEWS
export type TimeView = keyof typeof TIME_VIEWS
