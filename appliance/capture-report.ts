/** What the recorder says of its capture, over its socket. */
import { z } from 'zod'

const count = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform(BigInt)

/** Of the capture process (api-decisions section 3). A roll is a short "rolling" between two names. */
const STATES = ['idle', 'starting', 'running', 'rolling', 'stopping', 'error'] as const
export type CaptureState = (typeof STATES)[number]

const portSchema = z.object({ port: z.int(), packets: count, bytes: count })

export const captureReportSchema = z.object({
  state: z.enum(STATES),
  /** Full name; empty, like all below, when no capture runs. */
  name: z.string(),
  /** What it was started as. */
  baseName: z.string(),
  /** Row of the schedule that started it; empty = started by command. */
  scheduleName: z.string(),
  startNs: count,
  /** Capture ports that are read. */
  ports: z.array(z.int()),
  counts: z.object({
    packets: count,
    bytes: count,
    drops: count,
    fcsErrors: count,
    lastPacketNs: count,
    flushedNs: count,
    bitsPerSecond: z.number(),
    packetsPerSecond: z.number(),
    ports: z.array(portSchema),
  }),
  /** Why the state is "error"; else empty. */
  message: z.string(),
})
export type CaptureReport = z.infer<typeof captureReportSchema>
