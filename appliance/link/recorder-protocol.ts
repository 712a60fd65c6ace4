/**
 * The protocol of <store>/recorder.sock and recorder-owner.sock: one command per connection, JSON lines. The client
 * sends a request; the recorder answers with any number of progress lines and one last line, a result or an error.
 * Closing the connection cancels the command. For `import-stream`, the recorder answers `ready` when it is ready for the
 * bytes, and the client then sends them in frames (body-frames.ts).
 */
import { z } from 'zod'
import { CapfleetError, ERROR_KINDS, type ErrorCode } from '../../src/shared/base/error.ts'
import { HOLD_REASONS } from '../store/clock-record.ts'
import { captureReportSchema } from './capture-report.ts'
import { importedCaptureSchema } from './import-request.ts'

const count = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform(BigInt)

export const recorderRequestSchema = z.discriminatedUnion('command', [
  z.strictObject({ command: z.literal('info') }),
  z.strictObject({
    command: z.literal('import'),
    name: z.string(),
    files: z.array(z.string()),
    description: z.string().optional(),
    mayEvict: z.boolean().default(false),
  }),
  z.strictObject({
    command: z.literal('import-stream'),
    name: z.string(),
    source: z.string(),
    description: z.string().optional(),
    mayEvict: z.boolean().default(false),
    inputBytes: count.optional(),
  }),
  z.strictObject({ command: z.literal('delete'), name: z.string() }),
  z.strictObject({ command: z.literal('reindex') }),
  z.strictObject({ command: z.literal('verify'), repair: z.boolean() }),
  z.strictObject({
    command: z.literal('check-segment'),
    name: z.string(),
    port: z.int(),
    number: z.int(),
  }),
  z.strictObject({ command: z.literal('trust-clock') }),
  z.strictObject({ command: z.literal('capture-start'), name: z.string() }),
  z.strictObject({ command: z.literal('capture-stop'), stopsScheduled: z.boolean() }),
  z.strictObject({ command: z.literal('capture-report') }),
])
export type RecorderRequest = z.infer<typeof recorderRequestSchema>
/** The recorder applies the defaults of omitted members. */
export type SentRequest = z.input<typeof recorderRequestSchema>

const storeFindingSchema = z.object({
  /** Full name of the capture. */
  capture: z.string(),
  kind: z.enum([
    'record-damaged',
    'segment-missing',
    'segment-unlisted',
    'index-rebuilt',
    'block-damaged',
    'block-readable',
    'tally-damaged',
    'sieves-missing',
    'addresses-wrong',
    'log-differs',
  ]),
  /** Path of the damaged file; '' = it is named in the message. */
  file: z.string(),
  /** Packets that downloads leave out because of it, as far as known. */
  packets: count,
  bytes: count,
  /** Whether an earlier repair has marked the loss: it no longer counts in any capture. */
  isMarked: z.boolean(),
  /** What is wrong, and what a repair does. */
  message: z.string(),
  isRepaired: z.boolean(),
})
export type StoreFinding = z.infer<typeof storeFindingSchema>

/** The result of checking the whole store. */
const verifiedStoreSchema = z.object({
  captures: count,
  /** Finished segments that were checked. */
  segments: count,
  findings: z.array(storeFindingSchema),
})
export type VerifiedStore = z.infer<typeof verifiedStoreSchema>

/** The result of each command. */
export const recorderResultSchemas = {
  info: z.object({ pid: z.int() }),
  import: importedCaptureSchema,
  'import-stream': importedCaptureSchema,
  delete: z.object({ bytesFreed: count }),
  verify: verifiedStoreSchema,
  'check-segment': z.object({ findings: z.array(storeFindingSchema) }),
  reindex: z.object({ segments: count, blocks: count, newInTables: count, damages: z.array(z.string()) }),
  'trust-clock': z.object({ before: z.enum(['', ...HOLD_REASONS]) }),
  'capture-start': captureReportSchema,
  'capture-stop': z.object({
    name: z.string(),
    baseName: z.string(),
    stopNs: count,
    packets: count,
    bytes: count,
    drops: count,
  }),
  'capture-report': captureReportSchema,
} as const

export const recorderAnswerSchema = z.union([
  z.object({ progress: z.object({ inputBytes: count, totalInputBytes: count, packets: count }) }),
  z.object({ ready: z.literal(true) }),
  z.object({ result: z.unknown() }),
  z.object({
    error: z.object({
      code: z.string(),
      message: z.string(),
      param: z.string().optional(),
      members: z.record(z.string(), z.string()).optional(),
    }),
  }),
])
export type RecorderAnswer = z.infer<typeof recorderAnswerSchema>

/** The last line for a failure. */
export function formatRecorderError(error: CapfleetError): Record<string, unknown> {
  const { param, members } = error.details
  return { error: { code: error.code, message: error.message, param, members } }
}

interface WireError {
  readonly code: string
  readonly message: string
  readonly param?: string | undefined
  readonly members?: Readonly<Record<string, string>> | undefined
}

export function parseRecorderError(error: WireError): CapfleetError {
  const code: ErrorCode = Object.hasOwn(ERROR_KINDS, error.code)
    ? (error.code as ErrorCode)
    : 'internal-error'
  return new CapfleetError(code, error.message, { param: error.param, members: error.members })
}
