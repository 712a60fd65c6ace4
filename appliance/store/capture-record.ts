/**
 * The small record of a capture: facts that do not change while it grows. Two copies are stored, each with its
 * checksum; the segments are in segments.log. Nanoseconds and counts are decimal strings in it.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { CAPTURE_NAME } from '../../src/shared/query/capture-name-rule.ts'

const count = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform(BigInt)

const damageSchema = z.object({
  file: z.string(),
  /** 0 = nothing of the file is in the capture. */
  offset: count,
  compressed: z.boolean(),
  message: z.string(),
})

const noteSchema = z.object({ file: z.string(), message: z.string() })

export const captureRecordSchema = z.object({
  name: z.string().regex(CAPTURE_NAME),
  type: z.enum(['import', 'capture']),
  state: z.enum(['active', 'closed']),
  description: z.string(),
  /** For a live capture: the name given at its start, without the time that the full name adds. */
  baseName: z.string().optional(),
  /** For a live capture: the row of the schedule that started it. */
  scheduleName: z.string().optional(),
  /** For a live capture: the boot of the machine in which it was last recorded. */
  bootId: z.string().optional(),
  /** When the capture was started or imported: RFC 3339, UTC. */
  createdAt: z.string(),
  /**
   * [startNs, endNs) contains every packet. For a live capture it is the time of recording, for an import the packets'
   * own times; both are 0 if there are none.
   */
  startNs: count,
  endNs: count,
  /** Base names of the imported files. */
  sources: z.array(z.string()),
  /** Packets of the files that PCAP cannot represent: before 1970 or after 2106-02-07. */
  packetsOutOfTimeRange: count,
  /** Parts of the files that could not be read, and files that were left out. */
  damages: z.array(damageSchema),
  /** Facts about files from which nothing is missing; the message continues the name of the file. */
  notes: z.array(noteSchema).optional(),
})

/** Facts about a capture that the recorder stores in addition to its segments. */
export type CaptureRecord = z.infer<typeof captureRecordSchema>

const recordSchema = captureRecordSchema.extend({ revision: z.int().min(0) })

/** The newer copy has the larger revision. */
export type RevisedRecord = z.infer<typeof recordSchema>

const envelopeSchema = z.object({ format: z.literal(2), sha256: z.string(), record: recordSchema })
const envelopeStart = (sha256: string): string => `{"format":2,"sha256":"${sha256}","record":`

/** The text of a copy. */
export function encodeRecord(record: RevisedRecord): string {
  const text = toJson(record)
  return `${envelopeStart(sha256Of(text))}${text}}\n`
}

/** Parses a copy. Fails if the text is not a record, or was changed by anything but encodeRecord(). */
export function decodeRecord(text: string): RevisedRecord {
  const { sha256, record } = envelopeSchema.parse(JSON.parse(text))
  const start = envelopeStart(sha256)
  const inner = text.slice(start.length, -2)
  if (!text.startsWith(start) || !text.endsWith('}\n') || sha256Of(inner) !== sha256) {
    throw new Error('its checksum does not match')
  }
  return record
}

function sha256Of(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

const legacySegmentSchema = z.object({
  number: z.int().min(1),
  minNs: count,
  maxNs: count,
  packets: count,
  bytes: count,
})

const portNumber = z.int().min(0).max(255)

/** capture.json of format 1, which lists every segment. */
const legacyRecordSchema = captureRecordSchema.extend({
  format: z.literal(1),
  drops: z.object({ ring: count, disk: count }).optional(),
  packets: count,
  bytes: count,
  /** Segments in recording order; for an active capture only finished ones. */
  streams: z.array(
    z.object({
      port: portNumber,
      linkType: z.int().min(0).max(0xffff_ffff),
      snaplen: z.int().min(0).max(0xffff_ffff),
      segments: z.array(legacySegmentSchema),
    }),
  ),
  removed: z
    .object({
      packets: count,
      bytes: count,
      startNs: count,
      endNs: count,
      /** The highest number of a removed segment, by port; no segment with a higher number was removed. */
      segments: z.array(z.object({ port: portNumber, number: z.int().min(1) })),
    })
    .optional(),
})

export type LegacyRecord = z.infer<typeof legacyRecordSchema>

/** Parses a record of format 1. Fails if the text is not one. */
export function decodeLegacyRecord(text: string): LegacyRecord {
  return legacyRecordSchema.parse(JSON.parse(text))
}

/** JSON with every bigint as a decimal string. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'bigint' ? member.toString() : member,
  )
}
