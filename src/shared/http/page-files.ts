/**
 * The files of the web page, produced by the build: read once, and kept in memory in the form in which they are sent.
 * A program without them works, but has no page.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

export interface PageFile {
  readonly mediaType: string
  readonly plain: SentFile
  /** Present if it is smaller. */
  readonly gzip: SentFile | undefined
}

export interface SentFile {
  readonly bytes: Buffer
  /** Strong, without its quotes. */
  readonly etag: string
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
}

export class PageFiles {
  readonly #files: ReadonlyMap<string, PageFile>

  private constructor(files: ReadonlyMap<string, PageFile>) {
    this.#files = files
  }

  /** Reads index.html of `folder`, and the files in assets. Empty if the folder does not exist. */
  static async read(folder: string): Promise<PageFiles> {
    const assets = (await namesIn(join(folder, 'assets'))).map((name) => join('assets', name))
    const pages = (await namesIn(folder)).filter((name) => name === INDEX)
    const files = await Promise.all([...pages, ...assets].map((path) => readPageFile(folder, path)))
    return new PageFiles(new Map(files))
  }

  get index(): PageFile | undefined {
    return this.#files.get(INDEX)
  }

  /** Only files in the folder have a name here, so no name leads elsewhere. */
  asset(name: string): PageFile | undefined {
    return this.#files.get(`assets/${name}`)
  }
}

const INDEX = 'index.html'

/** The names of the files in a folder; empty if the folder does not exist. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

async function readPageFile(folder: string, path: string): Promise<readonly [string, PageFile]> {
  const bytes = await readFile(join(folder, path))
  const zipped = await promisify(gzip)(bytes, { level: 9 })
  const mediaType = MEDIA_TYPES[extname(path)] ?? 'application/octet-stream'
  return [
    path,
    { mediaType, plain: sent(bytes), gzip: zipped.length < bytes.length ? sent(zipped) : undefined },
  ]
}

function sent(bytes: Buffer): SentFile {
  return { bytes, etag: createHash('sha256').update(bytes).digest('base64url') }
}
