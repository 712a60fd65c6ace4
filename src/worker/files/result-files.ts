/**
 * The files of an export while they are written: windows are appended, each as its own gzip members or zstd frames, so
 * that a file can grow over many jobs of many workers.
 */
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Checkpoint, ExportedFile, MadeFile, ResultFile } from '../../gateway/export/export-record.ts'
import { FileWriter, storing } from '../../gateway/export/file-writer.ts'
import { ignoreMissing } from '../../gateway/export/spool.ts'
import { encode } from '../../gateway/fetch/encoding/encode.ts'
import type { Compression } from '../../shared/query/download/query-values.ts'
import type { EndedFile, PacketCounts, PacketSource } from './packet-source.ts'
import { extreme } from './tally.ts'

export interface ResultOptions {
  /** Where the files are written; must exist. */
  readonly folder: string
  readonly compression: Compression
  /** Maximum size of a file before compression; undefined: no limit. */
  readonly partBytes: number | undefined
  readonly signal: AbortSignal
  /** Number of finished files. */
  readonly fileCount: number
  /** The unfinished file, or null. */
  readonly openFile: ResultFile | null
  /**
   * Whether the previous writer of the open file has stopped. Otherwise it may still write or resume at any moment, so
   * the file is copied.
   */
  readonly isHandedOver: boolean
}

const NOTHING = new Uint8Array(0)

export class ResultFiles implements AsyncDisposable {
  readonly #options: ResultOptions
  #count: number
  /** Files finished since the last takeMade(). */
  #made: MadeFile[] = []
  #open: ResultFile | null
  #writer: FileWriter | undefined

  /** Prepares to append to the existing files. Fails with export-store-full. */
  static async open(options: ResultOptions): Promise<ResultFiles> {
    const result = new ResultFiles(options)
    await result.#goOn()
    return result
  }

  private constructor(options: ResultOptions) {
    this.#options = options
    this.#count = options.fileCount
    this.#open = options.openFile
  }

  /** Number of finished files. */
  get fileCount(): number {
    return this.#count
  }

  /** The unfinished file, or null. */
  get openFile(): ResultFile | null {
    return this.#open
  }

  /** The files that were finished since the last call, in order. */
  takeMade(): readonly MadeFile[] {
    const made = this.#made
    this.#made = []
    return made
  }

  /** Appends all packets; `header` begins each new file. `nameOf` returns the name of the n-th file, from 1. */
  async append(
    source: PacketSource,
    { header, nameOf }: { readonly header: Buffer; readonly nameOf: (part: number) => string },
  ): Promise<void> {
    do {
      const isNew = this.#writer === undefined
      const writer = this.#writer ?? (await this.#begin(nameOf(this.#count + 1)))
      await this.#fill(writer, source, isNew ? header : NOTHING)
      if (source.hasMore) await this.endFile(source)
    } while (source.hasMore)
  }

  /** Adds finished files after the existing ones. REQUIRES: no file is open. */
  keep(files: readonly ExportedFile[]): void {
    this.#made.push(...files)
    this.#count += files.length
  }

  /** Completes the current file, with what the source of its packets has for its end. */
  async endFile(source?: Pick<PacketSource, 'closing'>): Promise<void> {
    if (this.#writer !== undefined && source?.closing !== undefined)
      await this.#close(this.#writer, source.closing(this.#ended()))
    await this.#writer?.flush()
    await this.#writer?.[Symbol.asyncDispose]()
    this.#writer = undefined
    if (this.#open === null) return
    this.#made.push(this.#open)
    this.#count += 1
    this.#open = null
  }

  /** Makes everything written durable. */
  async flush(): Promise<void> {
    await this.#writer?.flush()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer?.[Symbol.asyncDispose]()
  }

  async #fill(writer: FileWriter, source: PacketSource, header: Uint8Array): Promise<void> {
    const { compression, signal } = this.#options
    const before = this.#opened()
    const pcapBytes = Number(before.pcapBytes) + header.length
    const maxBytes = this.#roomAfter(pcapBytes)
    const takesOne = before.packets === '0'
    let after: ResultFile = { ...before, pcapBytes: String(pcapBytes) }
    const records = source.take(header, { maxBytes, takesOne }, (counts) => {
      after = withRecords(after, counts)
    })
    for await (const part of encode(records, compression, signal)) {
      signal.throwIfAborted()
      await writer.write(part)
    }
    const { interfaces } = source
    this.#open = {
      ...after,
      bytes: String(writer.bytes),
      ...(interfaces === undefined ? {} : { interfaces }),
    }
  }

  #roomAfter(pcapBytes: number): number {
    const { partBytes } = this.#options
    return partBytes === undefined ? Number.POSITIVE_INFINITY : partBytes - pcapBytes
  }

  #ended(): EndedFile {
    const { packets, lastNs, pcapBytes } = this.#opened()
    const bytes = Number(pcapBytes)
    const maxBytes = this.#roomAfter(bytes)
    return { packets: BigInt(packets), lastNs: lastNs === null ? undefined : BigInt(lastNs), bytes, maxBytes }
  }

  async #close(writer: FileWriter, end: Buffer): Promise<void> {
    const { compression, signal } = this.#options
    for await (const part of encode(Readable.from([end]), compression, signal)) await writer.write(part)
    const { interfaces: _, ...file } = this.#opened()
    const pcapBytes = String(Number(file.pcapBytes) + end.length)
    this.#open = { ...file, bytes: String(writer.bytes), pcapBytes }
  }

  async #begin(name: string): Promise<FileWriter> {
    const path = this.#newPath(name)
    this.#writer = await FileWriter.open(path)
    const empty = { bytes: '0', pcapBytes: '0', packets: '0', firstNs: null, lastNs: null }
    this.#open = { name, path, ...empty }
    return this.#writer
  }

  async #goOn(): Promise<void> {
    if (this.#open === null) return
    const last = this.#open
    const { isHandedOver } = this.#options
    const path = isHandedOver ? last.path : this.#newPath(last.name)
    if (!isHandedOver) {
      await storing(() => copyFile(last.path, path, constants.COPYFILE_FICLONE))
      this.#open = { ...last, path }
    }
    this.#writer = await FileWriter.open(path, Number(last.bytes))
  }

  #newPath(name: string): string {
    return join(this.#options.folder, `${name}.${randomUUID()}.partial`)
  }

  #opened(): ResultFile {
    if (this.#open === null) throw new Error('there is no file yet')
    return this.#open
  }
}

/** Removes the open file of another worker, unless it is one of the files that followed it. */
export async function removeReplaced(
  { openFile: before }: Pick<Checkpoint, 'openFile'>,
  now: readonly MadeFile[],
): Promise<void> {
  const isThere = now.some((file) => 'path' in file && file.path === before?.path)
  if (before !== null && !isThere) await unlink(before.path).catch(ignoreMissing)
}

function withRecords(file: ResultFile, { packets, bytes, firstNs, lastNs }: PacketCounts): ResultFile {
  return {
    ...file,
    pcapBytes: String(Number(file.pcapBytes) + bytes),
    packets: String(Number(file.packets) + packets),
    firstNs: extreme(file.firstNs, firstNs, (a, b) => a < b),
    lastNs: extreme(file.lastNs, lastNs, (a, b) => a > b),
  }
}
