/** capture.json: what a store knows of one capture. Nanoseconds and counts are decimal strings in it. */
import { z } from 'zod'
import { CAPTURE_NAME } from '../../src/query/capture-name-rule.ts'

const count = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform(BigInt)

const segmentSchema = z.object({
  number: z.int().min(1),
  minNs: count,
  maxNs: count,
  packets: count,
  bytes: count,
})

const streamSchema = z.object({
  port: z.int().min(0).max(255),
  linkType: z.int().min(0).max(0xffff_ffff),
  snaplen: z.int().min(0).max(0xffff_ffff),
  /** In recording order. */
  segments: z.array(segmentSchema),
})

const damageSchema = z.object({
  file: z.string(),
  /** 0 = nothing of the file is in the capture. */
  offset: count,
  compressed: z.boolean(),
  message: z.string(),
})

/** What retention has taken of a capture, in all. */
const removedSchema = z.object({
  packets: count,
  /** Bytes of the segment files. */
  bytes: count,
  /** [startNs, endNs) held their packets. */
  startNs: count,
  endNs: count,
  /** Of each port the highest number of a removed segment; none with a higher number was. */
  segments: z.array(z.object({ port: z.int().min(0).max(255), number: z.int().min(1) })),
})

export const captureRecordSchema = z.object({
  format: z.literal(1),
  name: z.string().regex(CAPTURE_NAME),
  type: z.enum(['import', 'capture']),
  state: z.enum(['active', 'closed']),
  description: z.string(),
  /** Of a live capture: the name given at its start, without the time that the full name adds. */
  baseName: z.string().optional(),
  /** Of a live capture: the row of the schedule that started it. */
  scheduleName: z.string().optional(),
  /** Of a live capture: the boot of the machine in which it was recorded last. */
  bootId: z.string().optional(),
  /** Of a live capture: packets that could not be kept, by cause, as of its last finished segment or its end. */
  drops: z.object({ ring: count, disk: count }).optional(),
  /** When the capture was started or imported: RFC 3339, UTC. */
  createdAt: z.string(),
  /**
   * [startNs, endNs) holds every packet. Of a live capture it is the time of recording, of an import
   * the packets' own: both 0 when there is none.
   */
  startNs: count,
  endNs: count,
  /** Those that are held. */
  packets: count,
  /** Of the segment files that are held. */
  bytes: count,
  /** Of an active capture only finished segments; the ones behind them are being written. */
  streams: z.array(streamSchema),
  /** Absent: the capture is whole. */
  removed: removedSchema.optional(),
  /** Base names of the imported files. */
  sources: z.array(z.string()),
  /** Packets of them that PCAP cannot carry: before 1970 or after 2106-02-07. */
  packetsOutOfTimeRange: count,
  /** Parts of them that could not be read, and files that were left out. */
  damages: z.array(damageSchema),
})

export type CaptureRecord = z.infer<typeof captureRecordSchema>
export type StreamRecord = CaptureRecord['streams'][number]
export type SegmentRecord = StreamRecord['segments'][number]
export type RemovedRecord = z.infer<typeof removedSchema>

/** JSON with every bigint as a decimal string. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'bigint' ? member.toString() : member,
  )
}
