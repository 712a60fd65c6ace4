/**
 * clock.json: what the recorder knows about its clock, so that after a restart it notices what happened to the clock
 * meanwhile. Nanoseconds are decimal strings in it.
 */
import { open, readFile, rename } from 'node:fs/promises'
import { z } from 'zod'
import { syncPath } from '../../src/shared/base/durable-files.ts'
import { toJson } from './capture-record.ts'
import type { StorePaths } from './store-paths.ts'

const nanos = z
  .string()
  .regex(/^-?\d{1,20}$/)
  .transform(BigInt)

/**
 * clock-stepped: while the recorder or its machine was running. clock-unconfirmed: the machine was started with this
 * clock.
 */
export const HOLD_REASONS = ['clock-stepped', 'clock-unconfirmed'] as const
export type ClockHold = '' | (typeof HOLD_REASONS)[number]

/** Times that the clock showed while its offset from CLOCK_MONOTONIC stayed the same. */
const stretchSchema = z.object({
  /** How far CLOCK_REALTIME was ahead of CLOCK_MONOTONIC. */
  offsetNs: nanos,
  /** CLOCK_MONOTONIC at its beginning. */
  sinceNs: nanos,
  /** [firstNs, lastNs] contains every CLOCK_REALTIME of it. */
  firstNs: nanos,
  lastNs: nanos,
})

/**
 * Packets that were stamped within [fromNs, toNs] by a clock that was behind: they are younger than their stamps say.
 */
const correctionSchema = z.object({ fromNs: nanos, toNs: nanos, addNs: nanos })

const clockRecordSchema = z.object({
  format: z.literal(1),
  bootId: z.string(),
  /** The time by which ages are counted was `referenceNs` when CLOCK_MONOTONIC of that boot was `monotonicNs`. */
  monotonicNs: nanos,
  referenceNs: nanos,
  /** Why ages do not count; absent: they do. */
  hold: z.enum(HOLD_REASONS).optional(),
  /** How far CLOCK_REALTIME was ahead of CLOCK_MONOTONIC according to the time that schedules follow. */
  scheduleOffsetNs: nanos,
  /** The stretches of the present hold, the current one last. */
  stretches: z.array(stretchSchema),
  corrections: z.array(correctionSchema),
})

export type Stretch = z.infer<typeof stretchSchema>
export type Correction = z.infer<typeof correctionSchema>
export type ClockRecord = z.infer<typeof clockRecordSchema>

/** undefined if the store has no readable record: nothing is known about the clock then. */
export async function readClockRecord(paths: StorePaths): Promise<ClockRecord | undefined> {
  try {
    return clockRecordSchema.parse(JSON.parse(await readFile(paths.clock, 'utf8')))
  } catch {
    return undefined
  }
}

/** Replaces the record. One call at a time. Fails like the file system; the earlier record stays then. */
export async function writeClockRecord(paths: StorePaths, record: ClockRecord): Promise<void> {
  const fresh = `${paths.clock}.new`
  {
    await using file = await open(fresh, 'w', 0o640)
    await file.writeFile(`${toJson(record)}\n`)
    await file.sync()
  }
  await rename(fresh, paths.clock)
  await syncPath(paths.root)
}
