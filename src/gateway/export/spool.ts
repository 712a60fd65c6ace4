/**
 * The spool: a folder shared by all workers, with a subfolder for each running export. A span, which is what one
 * device has of one window, is stored there as a PCAP, or pcapng, next to a JSON file that describes the outcome; the JSON file is
 * written last.
 */
import { randomUUID } from 'node:crypto'
import { link, mkdir, readdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BodyPlaces } from '../fetch/body/position.ts'
import type { ExportWindow, Hole, ReportedFailure } from './export-record.ts'
import { FileWriter, storing } from './file-writer.ts'
import { EXPORT_ID } from './target/finished-file.ts'

/** The outcome of a span. */
export interface SpanOutcome {
  /** Name of its file in the folder of its window, or null if there is none. */
  readonly file: string | null
  readonly bytes: number
  readonly holes: readonly Hole[]
  /** Set if the export as ordered has become impossible. */
  readonly fatal: ReportedFailure | null
  /** Set if the device ended it at a limit: the time of the next packet. */
  readonly nextNs?: string
}

/** How far a span was fetched, and where those bytes are. */
export interface SpanCheckpoint {
  /** A name in the folder of its window. */
  readonly file: string
  readonly bytes: number
  readonly places: BodyPlaces
}

const NAME_FILE = '.spool'

/** Identifies a window within its export. */
export type SpooledWindow = Pick<ExportWindow, 'index' | 'beginNs' | 'endNs'>

/** The paths in the spool. */
export class Spool {
  readonly #root: string
  #name = ''

  constructor(root: string) {
    this.#root = root
  }

  /** Creates the folder and gives it a unique name. Fails with the errors of mkdir and open. */
  async prepare(): Promise<void> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 })
    this.#name = await this.#readOrGiveName()
  }

  async #readOrGiveName(): Promise<string> {
    const path = join(this.#root, NAME_FILE)
    const known = await readFile(path, 'utf8').catch(ignoreMissing)
    if (known !== undefined) return known
    const name = randomUUID()
    const part = `${path}.${name}`
    await writeFile(part, name, { mode: 0o600 })
    // If two workers start together, only one of them names it.
    await link(part, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
    await unlink(part)
    return await readFile(path, 'utf8')
  }

  /** The name stored in the folder, by which workers see whether they share it. REQUIRES: prepare() has resolved. */
  get name(): string {
    return this.#name
  }

  get path(): string {
    return this.#root
  }

  folderOf(exportId: string): string {
    return join(this.#root, exportId)
  }

  /** Where files are written for a target that is not a folder. */
  resultFolderOf(exportId: string): string {
    return `${this.folderOf(exportId)}.result`
  }

  /** One device's part of one window. The device is given as a number, so that no name becomes part of a path. */
  span(exportId: string, window: SpooledWindow, device: number): SpanFiles {
    return new SpanFiles(this.#windowFolder(exportId, window), String(device))
  }

  async removeWindow(exportId: string, window: SpooledWindow): Promise<void> {
    await rm(this.#windowFolder(exportId, window), { recursive: true, force: true })
  }

  /** If Redis is rolled back, a window may get another time, and must then not use what was fetched for the old one. */
  #windowFolder(exportId: string, { index, beginNs, endNs }: SpooledWindow): string {
    return join(this.folderOf(exportId), `${index}-${beginNs}-${endNs}`)
  }

  async remove(exportId: string): Promise<void> {
    for (const folder of [this.folderOf(exportId), this.resultFolderOf(exportId)])
      await rm(folder, { recursive: true, force: true })
  }

  /** Ids of the exports that have anything in the spool. Entries with other names are not ours and stay. */
  async exports(): Promise<readonly string[]> {
    const names = await readdir(this.#root)
    return [...new Set(names.map((name) => name.replace(/\.result$/, '')))].filter((name) =>
      EXPORT_ID.test(name),
    )
  }
}

export class SpanFiles {
  readonly #folder: string
  readonly #name: string

  constructor(folder: string, name: string) {
    this.#folder = folder
    this.#name = name
  }

  /** The file of one attempt: no two attempts write the same file. */
  attempt(): { readonly name: string; readonly path: string } {
    const name = `${this.#name}.${randomUUID()}.packets`
    return { name, path: join(this.#folder, name) }
  }

  pathOf(name: string): string {
    return join(this.#folder, name)
  }

  async prepare(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
  }

  /** Returns undefined if it is not finished yet. */
  outcome(): Promise<SpanOutcome | undefined> {
    return readJson<SpanOutcome>(this.#path('json'))
  }

  /** Records the outcome of the span, whose file must already be on disk. */
  async finish(outcome: SpanOutcome): Promise<void> {
    await writeJson(this.#path('json'), outcome)
    await this.forgetCheckpoint()
  }

  checkpoint(): Promise<SpanCheckpoint | undefined> {
    return readJson<SpanCheckpoint>(this.#path('checkpoint'))
  }

  async setCheckpoint(checkpoint: SpanCheckpoint): Promise<void> {
    await writeJson(this.#path('checkpoint'), checkpoint)
  }

  async forgetCheckpoint(): Promise<void> {
    await unlink(this.#path('checkpoint')).catch(ignoreMissing)
  }

  #path(kind: 'json' | 'checkpoint'): string {
    return join(this.#folder, `${this.#name}.${kind}`)
  }
}

async function readJson<Value>(path: string): Promise<Value | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Value
  } catch (error) {
    ignoreMissing(error)
    return undefined
  }
}

/** Atomic and durable, even if the machine loses power. */
async function writeJson(path: string, value: unknown): Promise<void> {
  const part = `${path}.${randomUUID()}`
  {
    await using file = await FileWriter.open(part)
    await file.write(Buffer.from(JSON.stringify(value)))
    await file.flush()
  }
  await storing(() => rename(part, path))
}

export function ignoreMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
}
