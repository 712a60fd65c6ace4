// One Debian package from a folder with its files. The same files give the same bytes: names are sorted, times and
// modes are set here, and nothing depends on the user or the umask.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { fail, ROOT } from '../setup/console.mjs'
import { controlText } from './debian-facts.mjs'
import { normalizeTree } from './normal-tree.mjs'

const SCRIPTS = ['preinst', 'postinst', 'prerm', 'postrm']

/** `tree` gets the folder DEBIAN. */
export function buildArchive({ name, version, architecture, epochS, tree, isFast }, file) {
  const files = filesBelow(tree)
  const control = join(tree, 'DEBIAN')
  mkdirSync(control)
  const sizes = files.map((path) => Math.ceil(lstatSync(join(tree, path)).size / 1024))
  const installedKib = sizes.reduce((sum, kib) => sum + kib, 0)
  writeFileSync(join(control, 'control'), controlText({ name, version, architecture, installedKib }))
  writeFileSync(join(control, 'md5sums'), files.map((path) => `${md5(join(tree, path))}  ${path}\n`).join(''))
  const conffiles = files.filter((path) => path.startsWith('etc/'))
  if (conffiles.length > 0)
    writeFileSync(join(control, 'conffiles'), conffiles.map((path) => `/${path}\n`).join(''))
  for (const script of SCRIPTS) {
    const source = join(ROOT, 'config', 'debian', `${name}.${script}`)
    if (!existsSync(source)) continue
    writeFileSync(join(control, script), readFileSync(source))
    chmodSync(join(control, script), 0o755)
  }
  normalizeTree(tree, epochS)
  // Debian 12 reads zstd; xz takes a minute for the Node.js alone. More than one thread splits the data where their
  // number says.
  const options = ['-Zzstd', ...(isFast ? ['-z1'] : []), '--root-owner-group', '--threads-max=1']
  const { status, error, stderr } = spawnSync('dpkg-deb', [...options, '--build', tree, file], {
    encoding: 'utf8',
    env: { ...process.env, SOURCE_DATE_EPOCH: String(epochS) },
  })
  if (status !== 0) fail(`dpkg-deb failed: ${error?.message ?? stderr}`)
}

/** Regular files below a folder, by their paths in it. */
function filesBelow(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort()
}

function md5(path) {
  return createHash('md5').update(readFileSync(path)).digest('hex')
}
