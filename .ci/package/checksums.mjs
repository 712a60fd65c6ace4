import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const NAME = 'SHA256SUMS'

/** Writes the checksums of all files in a folder beside them, as `sha256sum --check` reads them; returns the text. */
export function writeChecksums(folder) {
  const names = readdirSync(folder).filter((name) => name !== NAME)
  const lines = names.sort().map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')}  ${name}\n`,
  )
  writeFileSync(join(folder, NAME), lines.join(''))
  return lines.join('')
}
