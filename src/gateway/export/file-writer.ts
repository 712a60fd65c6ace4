/** A file that is appended to, and handles full disks and crashes of the machine. */
import { type FileHandle, open } from 'node:fs/promises'
import { CapfleetError } from '../../shared/base/error.ts'

export class FileWriter implements AsyncDisposable {
  readonly path: string
  readonly #file: FileHandle
  #bytes: number

  /** Continues at `bytes`; anything after that is cut off. Creates the file if it does not exist. */
  static async open(path: string, bytes = 0): Promise<FileWriter> {
    const file = await storing(() => open(path, bytes === 0 ? 'w' : 'r+', 0o600))
    try {
      if (bytes > 0) await file.truncate(bytes)
      return new FileWriter(path, file, bytes)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  private constructor(path: string, file: FileHandle, bytes: number) {
    this.path = path
    this.#file = file
    this.#bytes = bytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Writes all of it; afterwards the caller may reuse the memory. Fails with export-store-full. */
  async write(chunk: Uint8Array): Promise<void> {
    for (let done = 0; done < chunk.length; ) {
      const { bytesWritten } = await storing(() =>
        this.#file.write(chunk, done, chunk.length - done, this.#bytes),
      )
      done += bytesWritten
      this.#bytes += bytesWritten
    }
  }

  /** Makes everything written survive a power loss. */
  async flush(): Promise<void> {
    await storing(() => this.#file.datasync())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
  }
}

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Maps a full disk to export-store-full. */
export async function storing<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    const { code = '', path } = cause as NodeJS.ErrnoException
    if (!FULL.has(code)) throw cause
    throw new CapfleetError(
      'export-store-full',
      'the disk of exports is full; remove exports, or wait until some expire',
      { cause, members: path === undefined ? {} : { path } },
    )
  }
}
