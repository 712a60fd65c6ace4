// Builds the page that the gateway serves: src/console becomes dist-console.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fail, ROOT, run, say } from './console.mjs'
import { whenChanged } from './when-changed.mjs'

/** Depends on its own folder, what that imports from the gateway, and the packages. */
export function buildConsole() {
  const inputs = [join(ROOT, 'package-lock.json'), ...withImports(filesOf(join(ROOT, 'src', 'console')))]
  whenChanged(join(ROOT, 'dist-console', '.built'), inputs, () => {
    say('building the page (dist-console)')
    const args = ['build', 'src/console', '--config', 'src/console/vite.config.ts', '--logLevel', 'error']
    return (
      run(join(ROOT, 'node_modules', '.bin', 'vite'), args, { env: environment() }) ||
      fail('vite failed; its message is above')
    )
  })
}

/** Uses the packages' Node.js, because the configuration is TypeScript. */
function environment() {
  return { ...process.env, PATH: `${join(ROOT, 'node_modules', '.bin')}:${process.env.PATH}` }
}

function filesOf(path) {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

function withImports(paths) {
  const found = new Set(paths)
  // Iterating over a set includes elements that are added meanwhile.
  for (const path of found) for (const imported of importsOf(path)) found.add(imported)
  return [...found].sort()
}

function importsOf(path) {
  if (!/\.tsx?$/.test(path)) return []
  const names = readFileSync(path, 'utf8').matchAll(/(?:from|import)\s*\(?'(\.[^']+\.tsx?)'/g)
  // The types of the API are generated later, and only for checks.
  return [...names].map(([, name]) => join(dirname(path), name)).filter((imported) => existsSync(imported))
}
