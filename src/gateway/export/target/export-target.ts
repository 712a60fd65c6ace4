/** A place where the files of exports are kept: a folder, or a bucket of S3. */
import type { Readable } from 'node:stream'

export interface ExportTarget {
  /** The name used in Target=. */
  readonly name: string
  /**
   * A folder in which finished files should be written, so that publish() need not copy them; undefined: any folder.
   */
  readonly workFolder: string | undefined
  /** Fails with bad-config, saying what to fix, if the place cannot be used. For program start. */
  check(): Promise<void>
  /**
   * Publishes a finished file: it is then complete, on stable storage, and replaces an earlier one of its name.
   * Removes the local file. Repeated or concurrent calls do no harm. Fails with export-store-full,
   * export-target-unavailable, or the signal's reason; a failed attempt leaves nothing behind that remove() does not
   * find.
   */
  publish(file: FinishedFile, options: PublishOptions): Promise<void>
  /** The bytes of a kept file. Fails with unknown-export if it does not exist, or export-target-unavailable. */
  open(place: FilePlace, range?: ByteRange): Promise<Readable>
  /** Removes one file. Idempotent. */
  removeFile(place: FilePlace): Promise<void>
  /** Removes all files of an export, and the remains of attempts to publish some. Idempotent. */
  remove(exportId: string): Promise<void>
  /** Free space in bytes, or undefined if unknown. */
  freeBytes(): Promise<bigint | undefined>
}

export interface FilePlace {
  readonly exportId: string
  /** File name without folders. */
  readonly name: string
}

export interface FinishedFile extends FilePlace {
  /** Where the file is now. */
  readonly path: string
  readonly bytes: number
  /** SHA-256 of the whole file, in hexadecimal. */
  readonly sha256: string
}

export interface PublishOptions {
  readonly signal: AbortSignal
  /** Called with the number of bytes of the file that have been stored so far. */
  readonly onProgress?: (bytes: number) => void
}

/** Both ends are inclusive, as in HTTP. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}
