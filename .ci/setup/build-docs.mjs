// Builds the documentation that the gateway serves: docs becomes dist-docs.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fail, ROOT, run, say } from './console.mjs'
import { whenChanged } from './when-changed.mjs'

/** Depends on its own folder and on the packages. It needs no network. */
export function buildDocs() {
  const inputs = [join(ROOT, 'package-lock.json'), join(ROOT, 'CHANGELOG.md'), ...pages(join(ROOT, 'docs'))]
  whenChanged(join(ROOT, 'dist-docs', '.built'), inputs, () => {
    say('building the documentation (dist-docs)')
    const bin = join(ROOT, 'node_modules', '.bin')
    const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
    const args = ['build', 'docs', '--logLevel', 'error']
    return run(join(bin, 'vitepress'), args, { env }) || fail('vitepress failed; its message is above')
  })
}

function pages(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}
