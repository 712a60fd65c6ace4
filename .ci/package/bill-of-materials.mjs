// Bills of materials in the words of CycloneDX: which npm packages, Debian packages and files of ours something contains.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fail, output, ROOT } from '../setup/console.mjs'
import { controlText, debianVersion } from './debian-facts.mjs'

/**
 * The document of `npm sbom` with a component of this type and name, the npm packages below `modules`, and `more`
 * components. Fails for an npm package that package-lock.json has only for development, or not at all.
 */
export function billOfMaterials({ type, name, modules, more }) {
  const document = wholeDocument()
  const installed = new Set(installedPackages(modules))
  const ofNpm = document.components.filter((component) => installed.has(component['bom-ref']))
  const known = new Set(ofNpm.map((component) => component['bom-ref'])).intersection(runPackages())
  const unknown = [...installed].filter((one) => !known.has(one))
  if (unknown.length > 0) fail(`not in package-lock.json for more than development: ${unknown.join(', ')}`)
  const component = { ...document.metadata.component, type, name }
  const isThere = (ref) => installed.has(ref) || ref === component['bom-ref']
  return {
    ...document,
    metadata: { ...document.metadata, lifecycles: [{ phase: 'build' }], component },
    components: [...ofNpm, ...more],
    dependencies: document.dependencies
      .filter(({ ref }) => isThere(ref))
      .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter(isThere) })),
  }
}

let npmDocument

/** What npm says of package-lock.json, which it takes a second for. */
function wholeDocument() {
  if (npmDocument !== undefined) return npmDocument
  // With --omit=dev, or in production, it would also leave out packages that development needs too, such as koa.
  const text = output('npm', ['sbom', '--package-lock-only', '--sbom-format=cyclonedx'], {
    maxBuffer: 64 << 20,
    env: { ...process.env, NODE_ENV: '' },
  })
  if (text === '') fail('npm sbom failed')
  npmDocument = JSON.parse(text)
  return npmDocument
}

/** Of one of our Debian packages: the same for the same commit. `tree` is its content, without control files. */
export function packageDocument({ name, file, version, architecture, epochS, tree }) {
  const home = join(tree, 'opt/capfleet')
  const engine = join(home, 'native/build')
  const files = existsSync(engine) ? readdirSync(engine).sort() : []
  const made = billOfMaterials({
    type: 'application',
    name,
    modules: join(home, 'node_modules'),
    more: [
      ...files.map((one) => ({
        type: 'file',
        'bom-ref': `native/build/${one}`,
        name: `native/build/${one}`,
        version,
        hashes: [{ alg: 'SHA-256', content: sha256(readFileSync(join(engine, one))) }],
      })),
      ...neededPackages(controlText({ name, version, architecture }), architecture),
    ],
  })
  const purl = `pkg:deb/capfleet/${name}@${encodeURIComponent(debianVersion(version))}?arch=${architecture}`
  return reproducible(made, { file, epochS, component: { version, purl } })
}

/** Of the client as one executable: the same for the same commit. `modules` has the package.json of what is in it. */
export function executableDocument({ file, version, epochS, modules }) {
  const made = billOfMaterials({ type: 'application', name: 'capfleet', modules, more: [] })
  const purl = `pkg:generic/capfleet/capfleet@${encodeURIComponent(version)}`
  return reproducible(made, { file, epochS, component: { version, purl } })
}

/** With `component` about what it describes, and without what npm changes from run to run. */
function reproducible(made, { file, epochS, component }) {
  const described = { ...made.metadata.component, ...component }
  const content = { ...made, metadata: { ...made.metadata, component: described } }
  // npm sets both at random and to the present time.
  content.metadata.timestamp = new Date(epochS * 1000).toISOString()
  content.serialNumber = `urn:uuid:${uuidOf(`${file} ${sha256(JSON.stringify({ ...content, serialNumber: '' }))}`)}`
  return content
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

/** "name@version" of the packages in the lock file that are not only for development. */
function runPackages() {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  return new Set(
    Object.entries(packages)
      .filter(([, { dev }]) => !dev)
      .map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`),
  )
}

/** The packages that a control file depends on. The machine that installs them decides on their versions. */
function neededPackages(control, architecture) {
  const [, list] = /^Depends: (.*)$/m.exec(control)
  return list.split(', ').map((one) => {
    // Only the first of several alternatives is listed.
    const [, name, constraint] = /^(\S+)(?: \((.*?)\))?/.exec(one)
    const vendor = name.startsWith('capfleet-') ? 'capfleet' : 'debian'
    const purl = `pkg:deb/${vendor}/${encodeURIComponent(name)}?arch=${architecture}`
    const properties = [{ name: 'capfleet:debian-version', value: constraint ?? 'any' }]
    return { type: 'library', 'bom-ref': purl, name, purl, properties }
  })
}

function sha256(content) {
  return createHash('sha256').update(content).digest('hex')
}

/** The same for the same text. */
function uuidOf(text) {
  const hex = sha256(text)
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-')
}
