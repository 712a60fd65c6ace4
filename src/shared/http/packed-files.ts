/**
 * Large files of web pages, which the build has compressed with gzip into a folder that is named by their content. They
 * are sent from the disk as they are: a program does not keep them in memory, and never compresses or expands them.
 */
import { createReadStream, type ReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'

export interface PackedFile {
  readonly mediaType: string
  /** The size of the compressed file. */
  readonly bytes: number
  /** The compressed file. */
  open(): ReadStream
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
}

export class PackedFiles {
  /** Name of the folder. */
  readonly build: string
  readonly #files: ReadonlyMap<string, PackedFile>

  private constructor(build: string, files: ReadonlyMap<string, PackedFile>) {
    this.build = build
    this.#files = files
  }

  /** The files in the only folder below `parent`. Undefined if it was not built. */
  static async read(parent: string): Promise<PackedFiles | undefined> {
    const [build] = (await namesIn(parent)).filter((name) => !name.startsWith('.'))
    if (build === undefined) return undefined
    const folder = join(parent, build)
    const names = (await namesIn(folder)).filter((name) => name.endsWith('.gz'))
    const files = await Promise.all(
      names.map(
        async (name) => [name.slice(0, -'.gz'.length), await packedFile(join(folder, name))] as const,
      ),
    )
    return new PackedFiles(build, new Map(files))
  }

  /** By its name without the ending .gz. Only files of this build have one, so no name leads elsewhere. */
  file(build: string, name: string): PackedFile | undefined {
    return build === this.build ? this.#files.get(name) : undefined
  }
}

/** Empty if the folder does not exist. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).sort()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

async function packedFile(path: string): Promise<PackedFile> {
  const { size } = await stat(path)
  return {
    mediaType: MEDIA_TYPES[extname(path.slice(0, -'.gz'.length))] ?? 'application/octet-stream',
    bytes: size,
    open: () => createReadStream(path),
  }
}
