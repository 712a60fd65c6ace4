// What is made of files in the repository is made again when they change, and only then.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Calls `make` unless `stamp` remembers these inputs. Only when it answers true has it been made. */
export function whenChanged(stamp, inputs, make) {
  const hash = createHash('sha256')
  for (const path of inputs) hash.update(readFileSync(path))
  const wanted = hash.digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  mkdirSync(dirname(stamp), { recursive: true })
  if (make()) writeFileSync(stamp, wanted)
}
