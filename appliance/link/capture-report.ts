/** The recorder's report about its capture, sent over its socket. */
import { z } from 'zod'
import { HOLD_REASONS } from '../store/clock-record.ts'

const count = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform(BigInt)

/** State of the capture process. A roll is a short "rolling" between two names. */
const STATES = ['idle', 'starting', 'running', 'rolling', 'stopping', 'error'] as const
export type CaptureState = (typeof STATES)[number]

/** Packets and bytes of the capture, plus what the engine counts since the recorder started it. */
const portSchema = z.object({
  port: z.int(),
  /** Totals of the capture; bytes count PCAP records. */
  packets: count,
  bytes: count,
  seenPackets: count,
  seenBytes: count,
  storedPackets: count,
  storedBytes: count,
  filteredPackets: count,
  ringDrops: count,
  diskDrops: count,
  pendingPackets: count,
  fcsErrors: count,
  /** 0 = no packet yet. */
  lastPacketNs: count,
  /** Packets by size, in the order of native/live-capture.ts. */
  sizeClasses: z.array(count),
  hasHardwareTimestamps: z.boolean(),
  isUp: z.boolean(),
})

export type PortReport = z.infer<typeof portSchema>

const countsSchema = z.object({
  /** Totals of the capture; bytes count PCAP records. */
  packets: count,
  bytes: count,
  /** Packets that arrived but could not be stored: the sum of the next two. */
  drops: count,
  /** The kernel's ring was full. */
  ringDrops: count,
  /** The write queue in memory was full. */
  diskDrops: count,
  /** Dropped by the capture filter. */
  filteredPackets: count,
  /** Packets with a wrong frame check sequence. */
  fcsErrors: count,
  /** Packets in memory that are waiting to be written. */
  pendingPackets: count,
  pendingBytes: count,
  /** 0 = no packet yet. */
  lastPacketNs: count,
  /** Every packet before this time can be downloaded. */
  flushedNs: count,
  diskErrors: count,
  /** Text of the last disk error, however old. */
  diskMessage: z.string(),
  /** Received within the last second. */
  bitsPerSecond: z.number(),
  packetsPerSecond: z.number(),
  diskDropsPerSecond: z.number(),
  ports: z.array(portSchema),
})
export type CaptureCounts = z.infer<typeof countsSchema>

const retentionReportSchema = z.object({
  /** Bytes that stay free on the disk: the setting, or more if the capture is fast. */
  minFreeBytes: count,
  /** Why the oldest segments cannot be removed; empty = no problem. */
  problem: z.string(),
})
export type RetentionReport = z.infer<typeof retentionReportSchema>

export const captureReportSchema = z.object({
  state: z.enum(STATES),
  /** Full name; empty, like everything below, if no capture is running. */
  name: z.string(),
  /** The name under which it was started. */
  baseName: z.string(),
  /** Row of the schedule that started it; empty = started by command. */
  scheduleName: z.string(),
  startNs: count,
  /** Capture ports that are read. */
  ports: z.array(z.int()),
  counts: countsSchema,
  /** Why the state is "error", or what is wrong while it is "running"; else empty. */
  message: z.string(),
  /** Row that is due but waits for the end of a capture started by command; or empty. */
  waitingRow: z.string(),
  /** Row that was stopped until its next start; or empty. */
  skippedRow: z.string(),
  /** Absent: this recorder removes nothing. */
  retention: retentionReportSchema.optional(),
  /** Why nothing is removed by age: see recorder-clock.ts; empty = the clock is trusted. */
  clockHold: z.enum(['', ...HOLD_REASONS]),
})
export type CaptureReport = z.infer<typeof captureReportSchema>

/** A capture that has ended. */
export interface StoppedCapture {
  readonly name: string
  readonly baseName: string
  readonly stopNs: bigint
  readonly packets: bigint
  readonly bytes: bigint
  readonly drops: bigint
}
