// Rebuilds what is generated from files in the repository if, and only if, they have changed.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Calls `make` unless `stamp` records these inputs. Only if it returns true was it successful. */
export function whenChanged(stamp, inputs, make) {
  const hash = createHash('sha256')
  for (const path of inputs) hash.update(readFileSync(path))
  const wanted = hash.digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  mkdirSync(dirname(stamp), { recursive: true })
  if (make()) writeFileSync(stamp, wanted)
}
