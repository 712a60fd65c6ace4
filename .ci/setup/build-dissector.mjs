// Builds the dissector of the page: src/dissector becomes dist-dissector. It is optional, and a package of its own,
// because its licence is the GPL: without it the page shows a table of addresses.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fail, ROOT, run, say } from './console.mjs'
import { whenChanged } from './when-changed.mjs'

const FOLDER = join(ROOT, 'src', 'dissector')
const OUT = join(ROOT, 'dist-dissector')

/** Leaves out the dissector if its package cannot be installed. CAPFLEET_DISSECTOR=no leaves it out in any case. */
export function buildDissector() {
  if (process.env.CAPFLEET_DISSECTOR === 'no') return rmSync(OUT, { recursive: true, force: true })
  const files = readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isFile())
  const inputs = [join(ROOT, 'package-lock.json'), ...files.map(({ name }) => join(FOLDER, name)).sort()]
  whenChanged(join(OUT, '.built'), inputs, () => {
    say('building the dissector of the page (dist-dissector)')
    if (!install()) {
      say('its package is not to be had; the page works without it')
      return false
    }
    const bin = join(ROOT, 'node_modules', '.bin')
    const args = [
      'build',
      'src/dissector',
      '--config',
      'src/dissector/dissector-build.ts',
      '--logLevel',
      'error',
    ]
    const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
    return run(join(bin, 'vite'), args, { env }) || fail('vite failed; its message is above')
  })
}

/** Only what its own lock file has, verified by its checksum. */
function install() {
  const npm = process.env.npm_execpath
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const [command, first] = npm ? [process.execPath, [npm]] : ['npm', []]
  const isDone = run(command, [...first, ...args], { cwd: FOLDER })
  return isDone && existsSync(join(FOLDER, 'node_modules', '@goodtools', 'wiregasm'))
}
