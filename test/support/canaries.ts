/** Secrets that are made up, so that every trace of one is a leak. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export class Canaries {
  readonly #texts = new Map<string, readonly string[]>()

  /** A new one; `slot` says where it is used, for the message of a failure. */
  make(slot: string): string {
    const text = `c4n4ry-${randomBytes(12).toString('hex')}`
    this.#texts.set(slot, [text, btoa(text)])
    return text
  }

  /** A password, which HTTP Basic sends in another form. */
  password(slot: string, user: string): string {
    const text = this.make(slot)
    this.#texts.set(slot, [text, btoa(text), btoa(`${user}:${text}`)])
    return text
  }

  /** A secret that somebody else has made. */
  add(slot: string, text: string): void {
    this.#texts.set(slot, [text])
  }

  /** The slots whose secrets are in `bytes`. */
  in(bytes: Buffer): readonly string[] {
    return [...this.#texts]
      .filter(([, forms]) => forms.some((form) => bytes.includes(form)))
      .map(([slot]) => slot)
  }

  /** Fails when a secret is in `bytes`. */
  refuseIn(what: string, bytes: Buffer | string): void {
    assert.deepEqual(this.in(Buffer.from(bytes)), [], `in ${what}`)
  }

  /** Fails when a secret is in a file below `folder`; returns how many bytes were looked at. */
  async refuseBelow(folder: string): Promise<number> {
    let bytes = 0
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = join(entry.parentPath, entry.name)
      const content = await readFile(path)
      this.refuseIn(path, content)
      bytes += content.length
    }
    return bytes
  }

  get slots(): readonly string[] {
    return [...this.#texts.keys()]
  }
}
