/**
 * The files of web pages, produced by the build: all of a folder are read once, so that a running program never mixes
 * two versions, and each is compressed when it is first needed. A program without them works, but has no pages.
 */
import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

export interface PageFile {
  readonly mediaType: string
  readonly plain: SentFile
  /** Present if it is smaller. */
  readonly gzip: SentFile | undefined
  /** Hashes of the scripts within an HTML file, as a Content-Security-Policy names them. */
  readonly scriptHashes: readonly string[]
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
  readonly #bytes: ReadonlyMap<string, Buffer>
  readonly #files = new Map<string, Promise<PageFile>>()

  private constructor(bytes: ReadonlyMap<string, Buffer>) {
    this.#bytes = bytes
  }

  /** Reads all files in `folder` and below it, without those whose name begins with a dot. Empty if it does not exist. */
  static async read(folder: string): Promise<PageFiles> {
    const paths = await pathsIn(folder)
    const files = await Promise.all(
      paths.map(async (path) => [path, await readFile(join(folder, path))] as const),
    )
    return new PageFiles(new Map(files))
  }

  get isEmpty(): boolean {
    return this.#bytes.size === 0
  }

  /** By its path in the folder, such as "assets/a.js". Only files in the folder have one, so no path leads elsewhere. */
  file(path: string): Promise<PageFile> | undefined {
    const bytes = this.#bytes.get(path)
    if (bytes === undefined) return undefined
    const known = this.#files.get(path)
    if (known !== undefined) return known
    const made = makePageFile(path, bytes)
    this.#files.set(path, made)
    return made
  }
}

/** Paths of regular files, relative to the folder; empty if the folder does not exist. */
async function pathsIn(folder: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true, recursive: true })
    return entries
      .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
      .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

async function makePageFile(path: string, bytes: Buffer): Promise<PageFile> {
  const zipped = await promisify(gzip)(bytes, { level: 9 })
  const extension = extname(path)
  return {
    mediaType: MEDIA_TYPES[extension] ?? 'application/octet-stream',
    plain: sent(bytes),
    gzip: zipped.length < bytes.length ? sent(zipped) : undefined,
    scriptHashes: extension === '.html' ? scriptHashes(bytes.toString()) : [],
  }
}

const SCRIPT_BEGIN = '<script'
const SCRIPT_END = '</script>'

function scriptHashes(html: string): readonly string[] {
  const hashes: string[] = []
  let at = html.indexOf(SCRIPT_BEGIN)
  while (at >= 0) {
    const begin = html.indexOf('>', at) + 1
    const end = html.indexOf(SCRIPT_END, begin)
    if (begin === 0 || end < 0) break
    const isInline = !html.slice(at, begin).includes(' src=')
    if (isInline) hashes.push(`'sha256-${hash('sha256', html.slice(begin, end), 'base64')}'`)
    at = html.indexOf(SCRIPT_BEGIN, end)
  }
  return hashes
}

function sent(bytes: Buffer): SentFile {
  return { bytes, etag: hash('sha256', bytes, 'base64url') }
}
