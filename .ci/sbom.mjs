// The software of an image as a CycloneDX document, on stdout: the npm packages in the image, as `npm sbom` describes
// them, and Debian's packages.
//   node .ci/sbom.mjs IMAGE FOLDER        the name of an image, and the mount point of its root
import { join } from 'node:path'
import { billOfMaterials } from './package/bill-of-materials.mjs'
import { fail, output } from './setup/console.mjs'

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

const made = billOfMaterials({
  type: 'container',
  name: image,
  modules: join(folder, 'opt/capfleet/node_modules'),
  more: debianPackages(),
})
process.stdout.write(`${JSON.stringify(made, null, 2)}\n`)
