// The software of an image as a CycloneDX document, on stdout: the npm packages in the image, as `npm sbom` describes
// them, and Debian's packages.
//   node .ci/sbom.mjs IMAGE FOLDER        the name of an image, and the mount point of its root
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { billOfMaterials } from './package/bill-of-materials.mjs'
import { fail, output, ROOT } from './setup/console.mjs'

const [image = '', folder = ''] = process.argv.slice(2)

/** According to the image's own Debian status file. */
function debianPackages() {
  const fields = ['Package', 'Version', 'Architecture', 'source:Package', 'db:Status-Status']
  const format = `${fields.map((name) => `\${${name}}`).join('\\t')}\\n`
  const admin = `--admindir=${join(folder, 'var/lib/dpkg')}`
  const listed = output('dpkg-query', [admin, '--show', `--showformat=${format}`])
  if (listed === '') fail(`no Debian packages in ${folder}`)
  const lines = listed.trim().split('\n')
  return lines
    .map((line) => line.split('\t'))
    .filter(([, , , , status]) => status === 'installed')
    .map(([name, version, architecture, source]) => {
      const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`
      const properties = [{ name: 'capfleet:debian-source', value: source }]
      return { type: 'library', 'bom-ref': purl, name, version, purl, properties }
    })
}

/** What the page's dissector was built from, if the image has it. */
function dissectorPackages() {
  const built = join(folder, 'opt/capfleet/dist-dissector')
  if (!existsSync(built) || readdirSync(built).length === 0) return []
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'src/dissector/package-lock.json'), 'utf8'))
  return Object.entries(packages).flatMap(([path, { version }]) => {
    if (path === '') return []
    const name = path.slice('node_modules/'.length)
    const purl = `pkg:npm/${encodeURIComponent(name).replace('%2F', '/')}@${version}`
    const licenses = [{ license: { id: 'GPL-2.0-or-later' } }]
    return { type: 'library', 'bom-ref': purl, name, version, purl, licenses }
  })
}

const made = billOfMaterials({
  type: 'container',
  name: image,
  modules: join(folder, 'opt/capfleet/node_modules'),
  more: [...debianPackages(), ...dissectorPackages()],
})
process.stdout.write(`${JSON.stringify(made, null, 2)}\n`)
