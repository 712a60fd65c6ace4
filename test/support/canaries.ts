/** Made-up secrets, so that every occurrence of one is a leak. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export class Canaries {
  readonly #texts = new Map<string, readonly string[]>()

  /** Returns a new secret; `slot` says where it is used, for failure messages. */
  make(slot: string): string {
    return this.add(slot, `c4n4ry-${randomBytes(12).toString('hex')}`)
  }

  /** Adds a secret that was made elsewhere. */
  add(slot: string, text: string): string {
    this.#texts.set(slot, [text, ...insideBase64(text)])
    return text
  }

  /** The slots whose secrets are in `bytes`. */
  in(bytes: Buffer): readonly string[] {
    return [...this.#texts]
      .filter(([, forms]) => forms.some((form) => bytes.includes(form)))
      .map(([slot]) => slot)
  }

  /** Whether `text` is a secret and nothing else. */
  isOne(text: string): boolean {
    return [...this.#texts.values()].some(([secret]) => secret === text)
  }

  /** Fails if a secret is in `bytes`. */
  refuseIn(what: string, bytes: Buffer | string): void {
    assert.deepEqual(this.in(Buffer.from(bytes)), [], `in ${what}`)
  }

  /**
   * Fails if a secret is in a file below `folder` for which `isSearched` is true; returns the number of bytes
   * searched.
   */
  async refuseBelow(folder: string, isSearched: (file: FoundFile) => boolean = () => true): Promise<number> {
    let bytes = 0
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = join(entry.parentPath, entry.name)
      const content = await readFile(path)
      if (!isSearched({ path, content })) continue
      this.refuseIn(path, content)
      bytes += content.length
    }
    return bytes
  }

  get slots(): readonly string[] {
    return [...this.#texts.keys()]
  }
}

export interface FoundFile {
  readonly path: string
  readonly content: Buffer
}

/**
 * How the text appears within a longer base64 text, such as "user:password" of HTTP Basic: one form for each of its
 * three possible offsets within three bytes, without the characters that also depend on the surrounding bytes.
 */
function insideBase64(text: string): readonly string[] {
  const { length } = Buffer.from(text)
  return [0, 1, 2].map((before) => {
    const encoded = Buffer.from(`${'x'.repeat(before)}${text}`).toString('base64')
    return encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + length) * 8) / 6))
  })
}
