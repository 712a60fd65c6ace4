// The page, which the gateway serves: src/console becomes dist-console.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fail, ROOT, run, say } from './console.mjs'
import { whenChanged } from './when-changed.mjs'

/** What the page is made of: its own folder, the parameters that it shares with the gateway, and the packages. */
const SOURCES = ['src/console', 'src/query', 'src/contract/token-parameters.ts', 'src/base']

export function buildConsole() {
  const inputs = [join(ROOT, 'package-lock.json'), ...SOURCES.flatMap((path) => filesOf(join(ROOT, path)))]
  whenChanged(join(ROOT, 'dist-console', '.built'), inputs, () => {
    say('building the page (dist-console)')
    const args = ['build', 'src/console', '--config', 'src/console/vite.config.ts', '--logLevel', 'error']
    return (
      run(join(ROOT, 'node_modules', '.bin', 'vite'), args, { env: environment() }) ||
      fail('vite failed; its message is above')
    )
  })
}

/** By the Node.js of the packages: the configuration is TypeScript. */
function environment() {
  return { ...process.env, PATH: `${join(ROOT, 'node_modules', '.bin')}:${process.env.PATH}` }
}

function filesOf(path) {
  if (path.endsWith('.ts')) return [path]
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}
