import { randomUUID } from 'node:crypto'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { moveAside } from './move-aside.ts'

/** At this size it is restarted, and readers check every capture once. */
const JOURNAL_BYTES_MAX = 262_144

/**
 * Tells readers of the store which captures have changed (appliance/store/change-journal.ts). Belongs to the recorder,
 * and never fails a change that has been made: if a line cannot be written, or the file is no longer the one that was
 * written, the journal is restarted, which means that anything may have changed.
 */
export class ChangeJournalWriter implements AsyncDisposable {
  readonly #path: string
  #file: FileHandle
  #length = 0

  private constructor(path: string, file: FileHandle) {
    this.#path = path
    this.#file = file
  }

  /** Starts a new journal. What is in its place but cannot be written is moved aside. Fails with disk errors. */
  static async open(path: string): Promise<ChangeJournalWriter> {
    const journal = new ChangeJournalWriter(path, await openNew(path))
    await journal.#begin()
    return journal
  }

  /** Call it when the change is readable. */
  async note(name: string): Promise<void> {
    const line = Buffer.from(`${name}\n`)
    try {
      if (!(await this.#isInPlace())) return await this.#replace()
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

  /** Somebody may have removed or replaced the file, which readers then read. */
  async #isInPlace(): Promise<boolean> {
    const [ours, found] = await Promise.all([this.#file.stat(), stat(this.#path).catch(() => undefined)])
    return found !== undefined && found.ino === ours.ino && found.dev === ours.dev
  }

  async #replace(): Promise<void> {
    const file = await openNew(this.#path)
    await this.#file.close()
    this.#file = file
    await this.#begin()
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

async function openNew(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'w', 0o640)
  } catch (error) {
    if (!UNUSABLE.has((error as NodeJS.ErrnoException).code)) throw error
    await moveAside(path)
    return await open(path, 'w', 0o640)
  }
}

/** A folder, or a file of another user. */
const UNUSABLE: ReadonlySet<unknown> = new Set(['EISDIR', 'EACCES', 'EPERM'])
