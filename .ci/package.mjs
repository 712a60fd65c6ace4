// Builds what a release delivers besides the images: three Debian packages for one architecture, the npm package of the
// client, the client as one executable, a bill of materials (CycloneDX) for each of them but the npm package, and
// SHA256SUMS.
//   node .ci/package.mjs [--out FOLDER] [--arch amd64|arm64] [--native FOLDER] [--fast]
// Default: dist-packages, this machine's architecture, native/build. For another architecture, --native is the folder
// with the engine built for it, on such a machine; without --native only the client is packed, which has no engine. npm
// packages that only that architecture needs are downloaded and compared with package-lock.json.
// --fast compresses little, for tests of what is in the packages.
// The same commit gives the same bytes in any folder: times are the commit's (SOURCE_DATE_EPOCH overrides it), and only
// files that git knows are packed.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { packageDocument } from './package/bill-of-materials.mjs'
import { writeChecksums } from './package/checksums.mjs'
import { buildClientExecutable } from './package/client-executable.mjs'
import { buildArchive } from './package/debian-archive.mjs'
import { ARCHITECTURES, debianVersion, PACKAGES } from './package/debian-facts.mjs'
import { buildNpmArchive } from './package/npm-archive.mjs'
import { layTrees, needsEngine } from './package/package-trees.mjs'
import { fail, output, ROOT, say } from './setup/console.mjs'

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(ROOT, 'dist-packages') },
    arch: { type: 'string', default: process.arch === 'x64' ? 'amd64' : process.arch },
    native: { type: 'string' },
    fast: { type: 'boolean', default: false },
  },
})
const architecture = values.arch
if (!Object.hasOwn(ARCHITECTURES, architecture))
  fail(`--arch is one of ${Object.keys(ARCHITECTURES).join(', ')}, not ${architecture}`)
const isOwn = ARCHITECTURES[architecture].node === process.arch
const native = values.native ?? (isOwn ? join(ROOT, 'native', 'build') : undefined)
const names = PACKAGES.filter((name) => native !== undefined || !needsEngine(name))
if (names.length < PACKAGES.length)
  say(
    `only the client is packed for ${architecture}: capfleet-appliance and capfleet-gateway need --native, the folder with the engine built on such a machine (node .ci/setup.mjs)`,
  )

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const commitTime = output('git', ['log', '-1', '--format=%ct']).trim()
const epochS = Number(process.env.SOURCE_DATE_EPOCH ?? commitTime)
if (!Number.isInteger(epochS) || epochS <= 0) fail('there is no commit here; set SOURCE_DATE_EPOCH')
if (output('git', ['status', '--porcelain', '--untracked-files=no']) !== '')
  say('there are changes that are not committed: the packages contain them')

const out = resolve(values.out)
const work = mkdtempSync(join(tmpdir(), 'capfleet-package-'))
// After a failure too, which ends the process.
process.once('exit', () => rmSync(work, { recursive: true, force: true }))
rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
layTrees({ work, architecture, native: native && resolve(native) })
for (const name of names) {
  const file = `${name}_${debianVersion(version)}_${architecture}.deb`
  say(`building ${file}`)
  const tree = join(work, name)
  // Before the archive, which adds its control files to the tree.
  const document = packageDocument({ name, file, version, architecture, epochS, tree })
  buildArchive({ name, version, architecture, epochS, tree, isFast: values.fast }, join(out, file))
  writeFileSync(join(out, `${file}.cdx.json`), `${JSON.stringify(document, null, 2)}\n`)
}
say('building the npm package')
mkdirSync(join(work, 'npm'))
buildNpmArchive({ work: join(work, 'npm'), out, epochS })
say('building the client as one executable')
mkdirSync(join(work, 'executable'))
await buildClientExecutable({
  ...{ work: join(work, 'executable'), out, version, architecture, epochS },
  isFast: values.fast,
})
process.stdout.write(writeChecksums(out))
