/** The request for an import, its limits, and the record of the resulting capture. */
import { basename, isAbsolute } from 'node:path'
import { z } from 'zod'
import type { ImportProgress, ImportResult } from '../../native/import-capture-files.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import {
  CAPTURE_NAME,
  CAPTURE_NAME_RULE,
  mistakeInFileName,
} from '../../src/shared/query/capture-name-rule.ts'
import { type CaptureRecord, captureRecordSchema } from '../store/capture-record.ts'

export interface ImportRequest {
  /** Full name of the capture to create. */
  readonly name: string
  /** Absolute paths, imported in this order. */
  readonly files: readonly string[]
  readonly description?: string | undefined
  /** Whether the oldest packets of the store may be removed for it, if necessary. Default: no. */
  readonly mayEvict?: boolean | undefined
}

/** An import of bytes that are sent, instead of files that the recorder opens. */
export interface StreamedImport {
  readonly name: string
  /** Name of the file that the bytes come from, for the record and for messages. */
  readonly source: string
  readonly description?: string | undefined
  readonly mayEvict?: boolean | undefined
  /** Number of bytes that will be sent, if known: without room for them, none is read. */
  readonly inputBytes?: bigint | undefined
}

const count = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform(BigInt)

/** The result of a finished import: the record of its capture, and what the capture contains. */
export const importedCaptureSchema = captureRecordSchema.extend({
  packets: count,
  /** Bytes of the segment files. */
  bytes: count,
})
export type ImportedCapture = z.infer<typeof importedCaptureSchema>

/** The space of the store that an import may use. */
export interface ImportRoom {
  /** Space for its packets as PCAP records; undefined = what the disk holds. */
  readonly maxBytes: bigint | undefined
  /**
   * Reserves this many bytes when everything is written, until disposed. Fails with store-full if they are no longer
   * available.
   */
  hold(bytes: bigint): Promise<Disposable>
}

export interface ImportSettings {
  /** Size at which a segment ends; absent = the engine's default. */
  readonly segmentBytes?: number | undefined
  /** Maximum decompression ratio of a compressed file; absent = the engine's default. */
  readonly maxRatio?: number | undefined
}

export interface ImportWatch {
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined
}

/** Fails with bad-parameter. */
export function checkImportRequest({ name, files }: ImportRequest): void {
  checkName(name)
  if (files.length === 0) {
    throw new CapfleetError('bad-parameter', 'files names no file to import', { param: 'files' })
  }
  const relative = files.find((file) => !isAbsolute(file))
  if (relative !== undefined) {
    throw new CapfleetError('bad-parameter', `files must be absolute paths, got "${relative}"`, {
      param: 'files',
    })
  }
}

/** Fails with bad-parameter. */
export function checkStreamedImport({ name, source }: StreamedImport): void {
  checkName(name)
  const mistake = mistakeInFileName(source, `"${source.slice(0, 200)}"`)
  if (mistake === undefined) return
  throw new CapfleetError('bad-parameter', `source ${mistake}`, { param: 'source' })
}

function checkName(name: string): void {
  if (CAPTURE_NAME.test(name)) return
  throw new CapfleetError('bad-parameter', `name ${CAPTURE_NAME_RULE}, got "${name.slice(0, 200)}"`, {
    param: 'name',
  })
}

/** The record of the finished import. */
export function recordOfImport(request: ImportRequest, result: ImportResult): CaptureRecord {
  const segments = result.streams.flatMap((stream) => stream.segments)
  const leftOut = new Set(result.damages.filter(({ offset }) => offset === 0n).map(({ file }) => file))
  const [first] = segments
  return {
    name: request.name,
    type: 'import',
    state: 'closed',
    description: request.description ?? '',
    createdAt: new Date().toISOString(),
    startNs: segments.reduce((least, { minNs }) => (minNs < least ? minNs : least), first?.minNs ?? 0n),
    endNs: segments.reduce((end, { maxNs }) => (maxNs >= end ? maxNs + 1n : end), 0n),
    sources: request.files.filter((file) => !leftOut.has(file)).map((file) => basename(file)),
    packetsOutOfTimeRange: result.packetsOutOfTimeRange,
    damages: result.damages.map((damage) => ({ ...damage, file: basename(damage.file) })),
    ...(result.notes.length > 0 && {
      notes: result.notes.map(({ file, message }) => ({ file: basename(file), message })),
    }),
  }
}
