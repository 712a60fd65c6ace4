/** `--split`: a PCAP in files of limited size, each with the header. */
import { readdir, rm } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import { isBigEndian } from '../../../shared/pcap/pcap-header.ts'
import {
  MAX_CAPTURED_LENGTH,
  PCAP_HEADER_BYTES,
  RECORD_HEADER_BYTES,
} from '../../../shared/pcap/pcap-sizes.ts'
import { RecordCursor } from '../../../shared/pcap/record-cursor.ts'
import { usageFailure } from '../../client-failure.ts'
import { bytesIn } from '../../typed-amounts.ts'
import { bytesOf, type DownloadOutput, exists, OutputFile, PART_ENDING } from './output-file.ts'

/** Any packet fits. */
const SPLIT_BYTES_MIN = PCAP_HEADER_BYTES + RECORD_HEADER_BYTES + MAX_CAPTURED_LENGTH
const NUMBER_DIGITS = 4

/** "500MiB", "1GB" (decimal) or bytes. */
export function splitBytes(text: string): number {
  const bytes = bytesIn(text)
  if (bytes !== undefined && bytes >= SPLIT_BYTES_MIN) return bytes
  throw usageFailure(
    `--split must be a size such as 500MiB or 1GB, at least ${SPLIT_BYTES_MIN} bytes, got ${JSON.stringify(text)}`,
  )
}

export class SplitFiles implements DownloadOutput {
  readonly #path: string
  readonly #bytesMax: number
  readonly #files: OutputFile[]
  #header: Uint8Array

  private constructor(path: string, bytesMax: number, files: OutputFile[], header: Uint8Array) {
    this.#path = path
    this.#bytesMax = bytesMax
    this.#files = files
    this.#header = header
  }

  /** Continues the existing parts. */
  static async open(path: string, bytesMax: number): Promise<SplitFiles> {
    const files: OutputFile[] = []
    while (await exists(`${numbered(path, files.length + 1)}${PART_ENDING}`)) {
      files.push(await OutputFile.open(numbered(path, files.length + 1)))
    }
    const header: Uint8Array[] = []
    for await (const piece of files[0]?.kept() ?? []) {
      header.push(piece)
      if (bytesOf(header) >= PCAP_HEADER_BYTES) break
    }
    return new SplitFiles(path, bytesMax, files, Buffer.concat(header).subarray(0, PCAP_HEADER_BYTES))
  }

  /** Whether there are files of this name, complete ones of an earlier download. */
  static async areThere(path: string): Promise<boolean> {
    const names = await readdir(dirname(path)).catch((): string[] => [])
    return names.includes(basename(numbered(path, 1)))
  }

  /** Each file but the first has a header that is not part of the body. */
  get bytes(): number {
    const headers = Math.max(0, this.#files.length - 1) * PCAP_HEADER_BYTES
    return this.#files.reduce((sum, file) => sum + file.bytes, 0) - headers
  }

  get files(): number {
    return this.#files.length
  }

  get name(): string {
    return basename(numbered(this.#path, 1))
  }

  async *kept(): AsyncGenerator<Uint8Array, void> {
    for (const [index, file] of this.#files.entries()) yield* file.kept(index === 0 ? 0 : PCAP_HEADER_BYTES)
  }

  async truncate(bytes: number): Promise<void> {
    while (this.bytes > bytes) {
      const last = this.#files.at(-1)
      if (last === undefined) return
      const tooMany = this.bytes - bytes
      const own = last.bytes - (this.#files.length === 1 ? 0 : PCAP_HEADER_BYTES)
      if (tooMany < own) return await last.truncate(last.bytes - tooMany)
      await last.discard()
      this.#files.pop()
    }
  }

  /** REQUIRES: the pieces are whole records; the very first ones, the header and whole records. */
  async write(pieces: readonly Uint8Array[]): Promise<void> {
    const bytes = Buffer.concat(pieces)
    let from = 0
    if (this.#files.length === 0) {
      this.#header = Uint8Array.from(bytes.subarray(0, PCAP_HEADER_BYTES))
      await this.#next()
      from = PCAP_HEADER_BYTES
    }
    const record = new RecordCursor(bytes, { isBigEndian: isBigEndian(this.#header[0]) })
    let roomEnd = from + this.#room()
    for (record.at = from; record.at < bytes.length; record.at = record.end) {
      if (record.end <= roomEnd) continue
      await this.#last().write([bytes.subarray(from, record.at)])
      await this.#next()
      from = record.at
      roomEnd = from + this.#room()
    }
    await this.#last().write([bytes.subarray(from)])
  }

  async sync(): Promise<void> {
    for (const file of this.#files) await file.sync()
  }

  async finish(): Promise<void> {
    for (const file of this.#files) await file.finish()
    // From an earlier download with more files: after the new ones they would look like their continuation.
    for (let number = this.#files.length + 1; await exists(numbered(this.#path, number)); number++)
      await rm(numbered(this.#path, number))
  }

  async fail(): Promise<void> {
    // Their names show that they are parts.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const file of this.#files) await file[Symbol.asyncDispose]()
  }

  #last(): OutputFile {
    const last = this.#files.at(-1)
    if (last === undefined) throw new Error('a file was begun')
    return last
  }

  #room(): number {
    return this.#bytesMax - this.#last().bytes
  }

  async #next(): Promise<void> {
    const file = await OutputFile.open(numbered(this.#path, this.#files.length + 1))
    this.#files.push(file)
    await file.truncate(0)
    await file.write([this.#header])
  }
}

/** "day.pcap" becomes "day-0001.pcap" and so on. */
function numbered(path: string, number: number): string {
  const ending = extname(path)
  const digits = String(number).padStart(NUMBER_DIGITS, '0')
  return join(dirname(path), `${basename(path, ending)}-${digits}${ending}`)
}
