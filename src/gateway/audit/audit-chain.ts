/** The chain of audit lines that one process writes: a series of files, locked while the process lives. */
import { type FileHandle, mkdir, open, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { syncPath } from '../../shared/base/durable-files.ts'
import { lockFile } from '../../shared/base/file-lock.ts'
import { removeBeyond } from './audit-expiry.ts'
import { type AuditFile, auditFile, listChains, lockPath } from './audit-files.ts'
import { CHAIN_BEGIN, type ChainEnd, formatLine, LINE_BYTES_MAX, readLine } from './audit-line.ts'
import { linesBackwards } from './lines-backwards.ts'

export interface ChainOptions {
  readonly folder: string
  /** Name of the writer and of its chain. If another process holds that chain, -2, -3 ... is appended. */
  readonly name: string
  /** A file that reaches this size is followed by a new one. */
  readonly fileBytes: number
  /** While the files in the folder take more bytes than this, the oldest are removed. */
  readonly keepBytes: number
  readonly now: () => Date
}

const SLOTS_MAX = 1_000
/** Ages are counted in days. */
const LATE_MIN_MS = 60_000

/** Where an existing chain is to be continued. */
interface ChainTail {
  readonly file: AuditFile
  readonly end: ChainEnd
  /** Bytes of complete lines in the file. */
  readonly bytes: number
  /** Bytes of an incomplete line after them, left by a killed process. */
  readonly tornBytes: number
  /** The day (UTC) of the last line, or undefined if the chain has no lines. */
  readonly day: string | undefined
}

export class AuditChain implements AsyncDisposable {
  readonly #options: ChainOptions
  readonly #lock: Disposable
  /** Bytes cut off at the end of the chain's newest file. */
  readonly cutBytes: number
  #file: AuditFile
  #handle: FileHandle
  #bytes: number
  #end: ChainEnd
  #day: string | undefined
  /** When the last line was written: by the clock that dates lines and by one that never steps. */
  #wrote: { readonly atMs: number; readonly monotonicMs: number } | undefined
  /** Whether there may be an incomplete line after the first #bytes. */
  #isTorn: boolean
  /** The file was removed by someone else, so whatever is written to it is lost. */
  #isGone = false

  /** Continues the chain that the previous process of this name left. Fails with the errors of the file system. */
  static async open(options: ChainOptions): Promise<AuditChain> {
    await mkdir(options.folder, { recursive: true, mode: 0o700 })
    for (let slot = 1; slot <= SLOTS_MAX; slot += 1) {
      const name = slot === 1 ? options.name : `${options.name}-${slot}`
      const chain = await openSlot(options, name)
      if (chain !== undefined) return chain
    }
    throw new Error(`${SLOTS_MAX} processes already write as ${options.name}`)
  }

  /** Use AuditChain.open. */
  constructor(options: ChainOptions, lock: Disposable, { handle, tail }: OpenTail) {
    this.#options = options
    this.#lock = lock
    this.cutBytes = tail.tornBytes
    this.#file = tail.file
    this.#handle = handle
    this.#bytes = tail.bytes
    this.#end = tail.end
    this.#day = tail.day
    this.#isTorn = tail.tornBytes > 0
  }

  get fileName(): string {
    return basename(this.#file.path)
  }

  /** Writes a line for each event (from formatAuditEvent): all of them or none. A failed call may be retried. */
  async write(events: readonly string[]): Promise<void> {
    const at = this.#options.now()
    await this.#cutTorn()
    await this.#turnOver(at)
    let end = this.#end
    let text = ''
    for (const event of events) {
      const line = formatLine(event, at, end)
      text += line.text
      end = line.end
    }
    const data = Buffer.from(text)
    this.#isTorn = true
    await writeAll(this.#handle, data, this.#bytes)
    this.#isTorn = false
    this.#bytes += data.length
    this.#end = end
    this.#day = dayOf(at)
    this.#wrote = { atMs: at.getTime(), monotonicMs: performance.now() }
  }

  /** Makes everything written so far survive a power cut. May run concurrently with write(). */
  async sync(): Promise<void> {
    const handle = this.#handle
    // Start both now, before the handle can be closed in favour of another file.
    const [{ nlink }] = await Promise.all([handle.stat(), handle.datasync()])
    if (nlink > 0 || handle !== this.#handle) return
    this.#isGone = true
    throw new Error(`${this.#file.path} was removed by another program`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close()
    this.#lock[Symbol.dispose]()
  }

  async #cutTorn(): Promise<void> {
    if (!this.#isTorn) return
    await this.#handle.truncate(this.#bytes)
    this.#isTorn = false
  }

  /** Starts a new file each day and when the current one is full, so that old files can be removed whole. */
  async #turnOver(at: Date): Promise<void> {
    const isOver = this.#bytes > 0 && (dayOf(at) !== this.#day || this.#bytes >= this.#options.fileBytes)
    if (!isOver && !this.#isGone) return
    const { folder } = this.#options
    const next = auditFile(folder, this.#file.chain, this.#file.number + 1)
    if (!this.#isGone) await this.#handle.datasync()
    const handle = await open(next.path, 'wx', 0o600)
    const full = this.#handle
    await this.#redate(full, at)
    this.#handle = handle
    this.#file = next
    this.#bytes = 0
    this.#isGone = false
    await full.close()
    await syncPath(folder)
    await removeBeyond(folder, this.#options.keepBytes)
  }

  /** Sets the mtime of a file whose last line was written while the clock was behind. Its age counts from mtime. */
  async #redate(file: FileHandle, at: Date): Promise<void> {
    if (this.#wrote === undefined) return
    const writtenMs = at.getTime() - (performance.now() - this.#wrote.monotonicMs)
    if (writtenMs - this.#wrote.atMs < LATE_MIN_MS) return
    await file.utimes(writtenMs / 1_000, writtenMs / 1_000)
  }
}

interface OpenTail {
  readonly handle: FileHandle
  readonly tail: ChainTail
}

/**
 * Returns undefined if another process has this chain, or if its end is damaged; it is then kept untouched as
 * evidence.
 */
async function openSlot(options: ChainOptions, name: string): Promise<AuditChain | undefined> {
  const lock = await lockFile(lockPath(options.folder, name))
  if (lock === undefined) return undefined
  try {
    const tail = await findTail(options.folder, name)
    if (tail !== undefined) {
      const isNew = tail.bytes + tail.tornBytes === 0
      const handle = await open(tail.file.path, isNew ? 'w' : 'r+', 0o600)
      await syncPath(options.folder)
      await removeBeyond(options.folder, options.keepBytes)
      return new AuditChain(options, lock, { handle, tail })
    }
  } catch (error) {
    lock[Symbol.dispose]()
    throw error
  }
  lock[Symbol.dispose]()
  return undefined
}

/** Returns undefined if the last line is not as it was written. */
async function findTail(folder: string, chain: string): Promise<ChainTail | undefined> {
  const files = (await listChains(folder)).get(chain) ?? []
  const file = files.at(-1)
  if (file === undefined) {
    const first = auditFile(folder, chain, 1)
    return { file: first, end: CHAIN_BEGIN, bytes: 0, tornBytes: 0, day: undefined }
  }
  const { size } = await stat(file.path)
  const last = await lastLine(file)
  if (last !== undefined) {
    const { read: end, endBytes: bytes, day } = last
    return end && { file, end, bytes, tornBytes: size - bytes, day }
  }
  if (size > LINE_BYTES_MAX) return undefined
  // The process was killed before it had completed the first line of this file.
  const end = file.number === 1 ? CHAIN_BEGIN : await endOf(files.at(-2))
  return end && { file, end, bytes: 0, tornBytes: size, day: undefined }
}

async function endOf(file: AuditFile | undefined): Promise<ChainEnd | undefined> {
  return file && (await lastLine(file))?.read
}

async function lastLine(file: AuditFile) {
  for await (const { bytes, offset } of linesBackwards(file.path)) {
    const day = /"at":"([\d-]{10})/.exec(bytes.toString('latin1', 0, 64))?.[1]
    return { read: readLine(bytes), endBytes: offset + bytes.length + 1, day }
  }
  return undefined
}

async function writeAll(handle: FileHandle, data: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < data.length; ) {
    const { bytesWritten } = await handle.write(data, done, data.length - done, position + done)
    done += bytesWritten
  }
}

function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10)
}
