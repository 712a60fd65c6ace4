/** Where `capfleet get` puts the bytes: a file, several, or standard output. */
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { ClientFailure, usageFailure } from '../../client-failure.ts'

/** Takes a body from its first byte on; for a PCAP, by whole records. */
export interface DownloadOutput extends AsyncDisposable {
  /** Bytes of the body that it has. */
  readonly bytes: number
  /** What messages call it; of several files, the first. */
  readonly name: string
  /** Default: 1. */
  readonly files?: number
  /** What it has of the body, from an earlier run too. */
  kept(): AsyncIterable<Uint8Array>
  /** Leaves the first so many bytes of the body. */
  truncate(bytes: number): Promise<void>
  /** Fails with disk-full; then it has as much as before. */
  write(pieces: readonly Uint8Array[]): Promise<void>
  /** What it has survives a power loss. */
  sync(): Promise<void>
  /** The body is whole: it stays, under its name. */
  finish(): Promise<void>
  /** The body will not become whole here; `mark` leaves its format inside an element, for whoever reads it already. */
  fail(mark: Uint8Array): Promise<void>
}

export const PART_ENDING = '.part'

/** `<name>.part` until it is whole. */
export class OutputFile implements DownloadOutput {
  readonly #path: string
  readonly #file: FileHandle
  #bytes: number

  private constructor(path: string, file: FileHandle, bytes: number) {
    this.#path = path
    this.#file = file
    this.#bytes = bytes
  }

  /** Goes on with the part that is there. */
  static async open(path: string): Promise<OutputFile> {
    // "a+" makes it where it is missing and cuts nothing off; every write goes to its end.
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
    // Its name tells that it is a part.
  }

  /** Takes the part away. */
  async discard(): Promise<void> {
    await this.#file.close()
    await rm(`${this.#path}${PART_ENDING}`, { force: true })
  }

  /** Twice is legal. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
  }
}

export function bytesOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0)
}

/** What is left of the pieces when so many bytes are gone. */
function behind(pieces: readonly Uint8Array[], bytes: number): readonly Uint8Array[] {
  let gone = bytes
  return pieces.flatMap((piece) => {
    const skipped = Math.min(gone, piece.length)
    gone -= skipped
    return skipped === piece.length ? [] : [piece.subarray(skipped)]
  })
}

/** Of the system, where no more bytes fit. */
export const FULL_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Any other error of the disk stays what it is. */
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

/** Fails with a ClientFailure when something is there that is no file, or, unless `isForced`, anything. */
export async function refuseThere(path: string, isForced: boolean): Promise<void> {
  const there = await stat(path).catch(() => undefined)
  if (there === undefined) return
  // What is whole gets its name by a rename, which would take a device of the system or a pipe away.
  if (there.isDirectory()) throw usageFailure(`${path} is a folder; name a file in it`)
  if (!there.isFile()) throw usageFailure(`${path} is not a file; -o - writes to standard output`)
  if (!isForced) throw usageFailure(`${path} already exists; --force replaces it`)
}

export async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  )
}

async function* nothing(): AsyncGenerator<Uint8Array, void> {
  // An empty part.
}
