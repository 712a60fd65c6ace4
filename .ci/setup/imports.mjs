// Direct and indirect imports of files.
import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { ROOT } from './console.mjs'

const IMPORT = /(?:\bfrom|^import) '([^']+)'$/gm
const known = new Map()

/** The file's own imports: files by their path below the root, packages by name. */
function ownImports(path) {
  const found = known.get(path)
  if (found !== undefined) return found
  const names = [...readFileSync(join(ROOT, path), 'utf8').matchAll(IMPORT)].map(([, name]) => name)
  const isFile = (name) => name.startsWith('.')
  const own = {
    files: names.filter(isFile).map((name) => normalize(join(dirname(path), name))),
    packages: names.filter((name) => !isFile(name)),
  }
  known.set(path, own)
  return own
}

/** The files, all their direct and indirect imports, and the packages that any of these import. */
export function importsOf(paths) {
  const files = new Set(paths)
  const packages = new Set()
  // A set may grow while it is iterated.
  for (const path of files) {
    const own = ownImports(path)
    for (const file of own.files) files.add(file)
    for (const name of own.packages) packages.add(name)
  }
  return { files, packages }
}
