/** A place where the files of exports are kept: a folder, or a bucket of S3. */
import type { Readable } from 'node:stream'

export interface ExportTarget {
  /** As Target= names it. */
  readonly name: string
  /** A folder in which finished files should be made, so that publish() need not copy them; undefined: any will do. */
  readonly workFolder: string | undefined
  /** Fails with bad-config, saying what to mend, when the place cannot be used. For the start of a program. */
  check(): Promise<void>
  /**
   * Keeps a finished file: then it is there whole, on stable storage, and an earlier one of its name is gone. Takes the
   * local file away. Doing it twice, at once or one after the other, does no harm. Fails with export-store-full,
   * export-target-unavailable, or the signal's reason; nothing of a failed attempt is left behind but what remove()
   * finds.
   */
  publish(file: FinishedFile, options: PublishOptions): Promise<void>
  /** The bytes of a kept file. Fails with unknown-export when there is none, or export-target-unavailable. */
  open(place: FilePlace, range?: ByteRange): Promise<Readable>
  /** Removes one file. Idempotent. */
  removeFile(place: FilePlace): Promise<void>
  /** Removes all files of an export, and what attempts to keep some have left. Idempotent. */
  remove(exportId: string): Promise<void>
  /** How many bytes there is room for; undefined where nobody can tell. */
  freeBytes(): Promise<bigint | undefined>
}

export interface FilePlace {
  readonly exportId: string
  /** Without folders. */
  readonly name: string
}

export interface FinishedFile extends FilePlace {
  /** Where it is now. */
  readonly path: string
  readonly bytes: number
  /** Of the whole file, in hexadecimal digits. */
  readonly sha256: string
}

export interface PublishOptions {
  readonly signal: AbortSignal
  /** Hears how many bytes of the file have been kept so far. */
  readonly onProgress?: (bytes: number) => void
}

/** Both ends are in it, as HTTP has it. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}
