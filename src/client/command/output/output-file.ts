/** Destinations of `capfleet get`: a file, several files, or standard output. */
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { ClientFailure, usageFailure } from '../../client-failure.ts'

/** Accepts a body from its first byte; a PCAP in whole records. */
export interface DownloadOutput extends AsyncDisposable {
  /** Bytes of the body that it has. */
  readonly bytes: number
  /** Its name in messages; for several files, the first. */
  readonly name: string
  /** Default: 1. */
  readonly files?: number
  /** What it has of the body, including from an earlier run. */
  kept(): AsyncIterable<Uint8Array>
  /** Keeps only the first `bytes` bytes of the body. */
  truncate(bytes: number): Promise<void>
  /** Fails with disk-full, in which case it has as much as before. */
  write(pieces: readonly Uint8Array[]): Promise<void>
  /** Makes everything it has survive a power loss. */
  sync(): Promise<void>
  /** Called when the body is complete: it gets its final name. */
  finish(): Promise<void>
  /**
   * Called when the body will not be completed here; `mark` leaves its format inside an element, for anyone already
   * reading it.
   */
  fail(mark: Uint8Array): Promise<void>
}

export const PART_ENDING = '.part'

/** Named `<name>.part` until it is complete. */
export class OutputFile implements DownloadOutput {
  readonly #path: string
  readonly #file: FileHandle
  #bytes: number

  private constructor(path: string, file: FileHandle, bytes: number) {
    this.#path = path
    this.#file = file
    this.#bytes = bytes
  }

  /** Continues the existing part. */
  static async open(path: string): Promise<OutputFile> {
    // "a+" creates it if missing, truncates nothing, and appends every write.
    const file = await open(`${path}${PART_ENDING}`, 'a+')
    return new OutputFile(path, file, (await file.stat()).size)
  }

  get bytes(): number {
    return this.#bytes
  }

  get name(): string {
    return basename(this.#path)
  }

  kept(from = 0): AsyncIterable<Uint8Array> {
    if (this.#bytes <= from) return nothing()
    return createReadStream(`${this.#path}${PART_ENDING}`, {
      start: from,
      end: this.#bytes - 1,
      highWaterMark: 1_048_576,
    })
  }

  async truncate(bytes: number): Promise<void> {
    await this.#file.truncate(bytes)
    this.#bytes = bytes
  }

  async write(pieces: readonly Uint8Array[]): Promise<void> {
    try {
      for (let left = pieces; left.length > 0; ) {
        const { bytesWritten } = await this.#file.writev(left)
        left = behind(left, bytesWritten)
      }
    } catch (cause) {
      await this.#file.truncate(this.#bytes).catch(() => undefined)
      throw diskFailure(cause, `${this.#path}${PART_ENDING}`)
    }
    this.#bytes += bytesOf(pieces)
  }

  async sync(): Promise<void> {
    try {
      await this.#file.sync()
    } catch (cause) {
      throw diskFailure(cause, `${this.#path}${PART_ENDING}`)
    }
  }

  async finish(): Promise<void> {
    await this.sync()
    await rename(`${this.#path}${PART_ENDING}`, this.#path)
    await syncFolder(dirname(this.#path))
  }

  async fail(): Promise<void> {
    // Its name shows that it is a part.
  }

  /** Removes the part. */
  async discard(): Promise<void> {
    await this.#file.close()
    await rm(`${this.#path}${PART_ENDING}`, { force: true })
  }

  /** Also removes an empty part, from which nothing could resume. May be called twice. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
    if (this.#bytes === 0) await rm(`${this.#path}${PART_ENDING}`, { force: true })
  }
}

export function bytesOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0)
}

/** What is left of the pieces after this many bytes. */
function behind(pieces: readonly Uint8Array[], bytes: number): readonly Uint8Array[] {
  let gone = bytes
  return pieces.flatMap((piece) => {
    const skipped = Math.min(gone, piece.length)
    gone -= skipped
    return skipped === piece.length ? [] : [piece.subarray(skipped)]
  })
}

/** System error codes for a lack of space. */
export const FULL_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Returns any other disk error unchanged. */
export function diskFailure(cause: unknown, path: string): unknown {
  const { code = '', message = '' } = (cause ?? {}) as NodeJS.ErrnoException
  if (!FULL_CODES.has(code)) return cause
  return new ClientFailure('disk-full', `${dirname(path)} has no space left (${message}); free some space`, {
    code: 'disk-full',
    cause,
  })
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Fails with a ClientFailure if there is something that is not a file or, unless `isForced`, anything. */
export async function refuseThere(path: string, isForced: boolean): Promise<void> {
  const there = await stat(path).catch(() => undefined)
  if (there === undefined) return await refuseWithoutFolder(path)
  // A complete file gets its name with a rename, which would replace a device node or a pipe.
  if (there.isDirectory()) throw usageFailure(`${path} is a folder; name a file in it`)
  if (!there.isFile()) throw usageFailure(`${path} is not a file; -o - writes to standard output`)
  if (!isForced) throw usageFailure(`${path} already exists; --force replaces it`)
}

/** Fails with a ClientFailure if a file cannot be created there. */
export async function refuseWithoutFolder(path: string): Promise<void> {
  const folder = dirname(path)
  const there = await stat(folder).catch(() => undefined)
  if (there === undefined)
    throw usageFailure(`the folder ${folder} does not exist; create it, or name another`)
  if (!there.isDirectory()) throw usageFailure(`${folder} is not a folder, so no file can be in it`)
}

export async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  )
}

async function* nothing(): AsyncGenerator<Uint8Array, void> {
  // The part is empty.
}
