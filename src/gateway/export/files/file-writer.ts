/** A file that grows at its end, with what a full disk and a lost machine mean for it. */
import { type FileHandle, open } from 'node:fs/promises'
import { CapfleetError } from '../../../shared/base/error.ts'

export class FileWriter implements AsyncDisposable {
  readonly path: string
  readonly #file: FileHandle
  #bytes: number

  /** Goes on at `bytes`; what a file has behind them is cut off. A missing file is made. */
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

  /** All of it; the memory is the caller's again then. Fails with export-store-full. */
  async write(chunk: Uint8Array): Promise<void> {
    for (let done = 0; done < chunk.length; ) {
      const { bytesWritten } = await storing(() =>
        this.#file.write(chunk, done, chunk.length - done, this.#bytes),
      )
      done += bytesWritten
      this.#bytes += bytesWritten
    }
  }

  /** What was written is on the disk, also when the machine loses power now. */
  async flush(): Promise<void> {
    await storing(() => this.#file.datasync())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
  }
}

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Does something with a disk that may be full. */
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
