// The software of an image as a CycloneDX document, on stdout: the npm packages in the image, as `npm sbom` describes
// them, and Debian's packages.
//   node .ci/sbom.mjs IMAGE FOLDER        the name of an image, and the mount point of its root
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const [image = '', folder = ''] = process.argv.slice(2)

function output(command, args) {
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 << 20 })
  if (result.status !== 0) throw new Error(`${command} failed: ${result.error ?? result.stderr}`)
  return result.stdout
}

/** "name@version" of all packages below a node_modules folder. */
function installedPackages(modules) {
  if (!existsSync(modules)) return []
  return readdirSync(modules).flatMap((name) => {
    const path = join(modules, name)
    if (name.startsWith('.')) return []
    if (name.startsWith('@')) return installedPackages(path)
    const manifest = join(path, 'package.json')
    const own = existsSync(manifest) ? [JSON.parse(readFileSync(manifest, 'utf8'))] : []
    return [
      ...own.map((one) => `${one.name}@${one.version}`),
      ...installedPackages(join(path, 'node_modules')),
    ]
  })
}

/** According to the image's own Debian status file. */
function debianPackages() {
  const fields = ['Package', 'Version', 'Architecture', 'source:Package', 'db:Status-Status']
  const format = `${fields.map((name) => `\${${name}}`).join('\\t')}\\n`
  const admin = `--admindir=${join(folder, 'var/lib/dpkg')}`
  const lines = output('dpkg-query', [admin, '--show', `--showformat=${format}`])
    .trim()
    .split('\n')
  return lines
    .map((line) => line.split('\t'))
    .filter(([, , , , status]) => status === 'installed')
    .map(([name, version, architecture, source]) => {
      const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`
      const properties = [{ name: 'capfleet:debian-source', value: source }]
      return { type: 'library', 'bom-ref': purl, name, version, purl, properties }
    })
}

/** "name@version" of the packages in the lock file that are not only for development. */
function runPackages() {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  return new Set(
    Object.entries(packages)
      .filter(([, { dev }]) => !dev)
      .map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`),
  )
}

// With --omit=dev it would also leave out packages that development needs too, such as koa.
const document = JSON.parse(output('npm', ['sbom', '--package-lock-only', '--sbom-format=cyclonedx']))
const installed = new Set(installedPackages(join(folder, 'opt/capfleet/node_modules')))
const ofNpm = document.components.filter((component) => installed.has(component['bom-ref']))
const known = new Set(ofNpm.map((component) => component['bom-ref'])).intersection(runPackages())
const unknown = [...installed].filter((name) => !known.has(name))
if (unknown.length > 0)
  throw new Error(`not in package-lock.json for more than development: ${unknown.join(', ')}`)

const component = { ...document.metadata.component, type: 'container', name: image }
const isThere = (name) => installed.has(name) || name === component['bom-ref']
const made = {
  ...document,
  metadata: { ...document.metadata, lifecycles: [{ phase: 'build' }], component },
  components: [...ofNpm, ...debianPackages()],
  dependencies: document.dependencies
    .filter(({ ref }) => isThere(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter(isThere) })),
}
process.stdout.write(`${JSON.stringify(made, null, 2)}\n`)
