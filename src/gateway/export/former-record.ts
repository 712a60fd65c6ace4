/** Reads records of exports stored by earlier versions, where each checkpoint contained all files, as new ones. */
import type {
  Checkpoint,
  ExportedFile,
  FillBase,
  FormerFiles,
  MadeFile,
  ResultFile,
} from './export-record.ts'

export interface FormerCheckpoint extends Omit<Checkpoint, 'fileCount' | 'openFile' | 'writtenBytes'> {
  /**
   * The last one is still being written while `isFileOpen`. Those that the target had when others were filled have a
   * checksum.
   */
  readonly files: readonly (ResultFile & { readonly sha256?: string })[]
  readonly isFileOpen: boolean
}

export interface FormerBase extends Omit<FillBase, 'checkpoint'> {
  readonly checkpoint: FormerCheckpoint | Checkpoint
  readonly files: readonly ExportedFile[]
}

/** The stored parts of a record, whichever version wrote them. */
export interface StoredParts {
  readonly checkpoint: FormerCheckpoint | Checkpoint | undefined
  readonly base: FormerBase | FillBase | undefined
  /** Current files that the target has. */
  readonly files: readonly ExportedFile[]
}

export interface ReadParts {
  readonly checkpoint: Checkpoint | undefined
  readonly base: FillBase | undefined
  readonly former: FormerFiles | undefined
}

export function readParts({ checkpoint, base, files }: StoredParts): ReadParts {
  const isFormer = isFormerCheckpoint(checkpoint) || isFormerBase(base) || files.length > 0
  if (!isFormer) return { checkpoint: checkpoint as Checkpoint, base: base as FillBase, former: undefined }
  return {
    checkpoint: checkpoint && withoutFiles(checkpoint),
    base: base && baseWithoutFiles(base),
    former: {
      made: isFormerCheckpoint(checkpoint) ? madeOf(checkpoint, files) : files,
      kept: isFormerBase(base) ? base.files : files,
    },
  }
}

function isFormerCheckpoint(checkpoint: StoredParts['checkpoint']): checkpoint is FormerCheckpoint {
  return checkpoint !== undefined && 'files' in checkpoint
}

function isFormerBase(base: StoredParts['base']): base is FormerBase {
  return base !== undefined && 'files' in base
}

function baseWithoutFiles(base: FormerBase | FillBase): FillBase {
  const { endedMs, expiresMs, count } = base
  return { checkpoint: withoutFiles(base.checkpoint), endedMs, expiresMs, count }
}

function withoutFiles(stored: FormerCheckpoint | Checkpoint): Checkpoint {
  if (!isFormerCheckpoint(stored)) return stored
  const { files, isFileOpen, ...checkpoint } = stored
  return {
    ...checkpoint,
    fileCount: files.length - (isFileOpen ? 1 : 0),
    openFile: isFileOpen ? (files.at(-1) ?? null) : null,
    writtenBytes: String(files.reduce((sum, { bytes }) => sum + BigInt(bytes), 0n)),
  }
}

function madeOf(
  { files, isFileOpen }: FormerCheckpoint,
  published: readonly ExportedFile[],
): readonly MadeFile[] {
  return files
    .slice(0, isFileOpen ? -1 : undefined)
    .map((file, index) => published[index] ?? keptFile(file) ?? file)
}

function keptFile({
  name,
  bytes,
  packets,
  firstNs,
  lastNs,
  sha256,
}: FormerCheckpoint['files'][number]): ExportedFile | undefined {
  return sha256 === undefined ? undefined : { name, bytes, packets, firstNs, lastNs, sha256 }
}
