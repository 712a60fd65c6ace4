// Prints the test files of `npm run test:quick`: those that start no process, because nothing that they import, directly or by
// another file, is node:child_process.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const IMPORT = /(?:\bfrom|^import) '([^']+)'$/gm
const known = new Map()

/** What the file itself imports: files as ./path, packages by their names. */
function importsOf(file) {
  const found = known.get(file)
  if (found !== undefined) return found
  const names = [...readFileSync(file, 'utf8').matchAll(IMPORT)].map(([, name]) => name)
  const imports = names.map((name) =>
    name.startsWith('.') ? `./${normalize(join(dirname(file), name))}` : name,
  )
  known.set(file, imports)
  return imports
}

function startsProcesses(file) {
  const seen = new Set([`./${file}`])
  // A set may grow while it is walked.
  for (const path of seen) if (path.startsWith('./')) for (const name of importsOf(path)) seen.add(name)
  return seen.has('node:child_process')
}

const files = globSync('test/**/*.test.ts').sort()
process.stdout.write(`${files.filter((file) => !startsProcesses(file)).join('\n')}\n`)
