import { randomUUID } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'

/** At this size it is restarted, and readers check every capture once. */
const JOURNAL_BYTES_MAX = 262_144

/**
 * Tells readers of the store which captures have changed (appliance/store/change-journal.ts). Belongs to the recorder,
 * and never fails a change that has been made: if a line cannot be written, the journal is restarted, which means that
 * anything may have changed.
 */
export class ChangeJournalWriter implements AsyncDisposable {
  readonly #file: FileHandle
  #length = 0

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /** Starts a new journal. Fails with the error of opening the file. */
  static async open(path: string): Promise<ChangeJournalWriter> {
    const journal = new ChangeJournalWriter(await open(path, 'w', 0o640))
    await journal.#begin()
    return journal
  }

  /** Call it when the change is readable. */
  async note(name: string): Promise<void> {
    const line = Buffer.from(`${name}\n`)
    try {
      if (this.#length === 0 || this.#length + line.length > JOURNAL_BYTES_MAX) return await this.#begin()
      const at = this.#length
      this.#length += line.length
      const { bytesWritten } = await this.#file.write(line, 0, line.length, at)
      if (bytesWritten < line.length) await this.#begin()
    } catch {
      await this.#begin()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close()
  }

  /** An empty file means the same as a new generation: any capture may have changed. */
  async #begin(): Promise<void> {
    this.#length = 0
    await this.#file.truncate(0)
    const line = Buffer.from(`${randomUUID()}\n`)
    try {
      const { bytesWritten } = await this.#file.write(line, 0, line.length, 0)
      if (bytesWritten === line.length) this.#length = line.length
    } catch {
      // The disk is full: the file stays empty until there is room.
    }
  }
}
